"""The class `Vm` sends requests to the metadata endpoint of the test server, as a handler on that
VM does.
"""

import json
import urllib.error
import urllib.request
from typing import Any

VERSION = "2020-07-01"
TIMEOUT_S = 30  # Longer than any fault that delays an answer in a usual test.
_PLAIN = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NotAnswered(Exception):
    """The endpoint answered with an error, which is in `status` and `body`."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"the endpoint answered {status}: {body}")
        self.status = status
        self.body = body


class Vm:
    def __init__(self, name: str, base: str) -> None:
        self.name = name
        self.url = f"{base}/vm/{name}"
        """The URL that a handler uses in place of `http://169.254.169.254`."""
        self.events_url = f"{self.url}/metadata/scheduledevents"

    def document(self, version: str = VERSION) -> dict[str, Any]:
        """Poll once, and return the document. The first poll activates the scope, as on Azure.

        Raises `NotAnswered` for an error status, and `JSONDecodeError` for an empty body.
        """
        found = json.loads(self._ask(version))
        assert isinstance(found, dict)
        return found

    def approve(self, *event_ids: str, version: str = VERSION) -> None:
        """Approve events as a handler does. Raises `NotAnswered` for an error status."""
        body = {"StartRequests": [{"EventId": id} for id in event_ids]}
        self._ask(version, json.dumps(body).encode())

    def _ask(self, version: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(  # noqa: S310  (the URL is our own)
            f"{self.events_url}?api-version={version}", data=body, headers={"Metadata": "true"}
        )
        try:
            with _PLAIN.open(request, timeout=TIMEOUT_S) as answer:
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as refusal:
            said = refusal.read().decode("utf-8", "replace")
            refusal.close()
            raise NotAnswered(refusal.code, said) from None
