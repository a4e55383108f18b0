"""Runs `fairwarning serve` over TLS on a virtual clock, and asks it what `az` does not show."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import serving

PROGRAM = (sys.executable, "-m", "fairwarning")
_STEP = "1m"
_STEP_EVERY_S = 0.2
_ASK_S_MAX = 120


class Failed(Exception):
    """A check failed."""


class Server:
    def __init__(self, control_url: str, metadata_url: str) -> None:
        self.control_url = control_url
        self._api = httpx.Client(
            base_url=f"{control_url}/api/v1", timeout=_ASK_S_MAX, trust_env=False
        )
        self._vm = httpx.Client(
            base_url=metadata_url, headers={"Metadata": "true"}, trust_env=False
        )

    def close(self) -> None:
        self._api.close()
        self._vm.close()

    def advance(self, by: str = _STEP) -> None:
        self._api.post("/clock/advance", json={"by": by}).raise_for_status()

    @contextmanager
    def time_flowing(self) -> Iterator[None]:
        """Moves the clock a minute every moment, so that nothing waits long for an event."""
        over = threading.Event()

        def push() -> None:
            while not over.wait(_STEP_EVERY_S):
                self.advance()

        pusher = threading.Thread(target=push)
        pusher.start()
        try:
            yield
        finally:
            over.set()
            pusher.join()

    def azure(self) -> dict[str, Any]:
        """Returns the settings for Azure's clients."""
        found = self._api.get("/azure").raise_for_status().json()
        assert isinstance(found, dict)
        return found

    def scope_of(self, name: str) -> dict[str, Any]:
        """Returns the scope of the resource of this name."""
        return next(each for each in self._scopes() if each["name"] == name)

    def instances(self) -> dict[str, dict[str, Any]]:
        """Returns all instances by name, as the operator API shows them."""
        return {each["name"]: each for scope in self._scopes() for each in scope["instances"]}

    def instances_of(self, name: str) -> dict[str, dict[str, Any]]:
        scopes = [scope for scope in self._scopes() if scope["name"] == name]
        return {each["name"]: each for scope in scopes for each in scope["instances"]}

    def _scopes(self) -> list[dict[str, Any]]:
        found = self._api.get("/fleet").raise_for_status().json()["scopes"]
        assert isinstance(found, list)
        return found

    def events(self, **query: str) -> list[dict[str, Any]]:
        """Returns the events, newest first."""
        found = self._api.get("/events", params=query).raise_for_status().json()["events"]
        assert isinstance(found, list)
        return found

    def schedule(self, type: str, name: str) -> None:
        """Schedules maintenance of the platform."""
        body = {"type": type, "targets": [name]}
        self._api.post("/events", json=body).raise_for_status()

    def document(self, name: str) -> list[dict[str, Any]]:
        """Returns the events that the instance sees. The first call activates its scope."""
        found = self._ask("GET", name, "scheduledevents", "2020-07-01")["Events"]
        assert isinstance(found, list)
        return found

    def wait_for_event(self, name: str) -> dict[str, Any]:
        """Waits until the instance sees one event, and returns it."""
        return self._wait(name, lambda events: len(events) == 1)[0]

    def wait_until_started(self, name: str) -> None:
        self._wait(name, lambda events: [e["EventStatus"] for e in events] == ["Started"])

    def wait_until_quiet(self, name: str) -> None:
        self._wait(name, lambda events: not events)

    def _wait(
        self, name: str, is_so: Callable[[list[dict[str, Any]]], bool]
    ) -> list[dict[str, Any]]:
        deadline = time.monotonic() + _ASK_S_MAX
        while not is_so(found := self.document(name)):
            if time.monotonic() > deadline:
                raise Failed(f"{name} still sees {found}")
            time.sleep(_STEP_EVERY_S)
        return found

    def metadata(self, name: str) -> dict[str, Any]:
        """Returns the instance metadata of the instance."""
        return self._ask("GET", name, "instance", "2021-02-01")

    def approve(self, name: str, event_id: str) -> None:
        body = {"StartRequests": [{"EventId": event_id}]}
        path = f"/vm/{name}/metadata/scheduledevents"
        answer = self._vm.post(path, params={"api-version": "2020-07-01"}, json=body)
        answer.raise_for_status()

    def _ask(self, method: str, name: str, what: str, version: str) -> dict[str, Any]:
        path = f"/vm/{name}/metadata/{what}"
        answer = self._vm.request(method, path, params={"api-version": version})
        found = answer.raise_for_status().json()
        assert isinstance(found, dict)
        return found


@contextmanager
def az_server(folder: Path) -> Iterator[Server]:
    """Runs a fresh server; its log and all that it keeps are in `folder`."""
    options = (
        "--empty", "--clock", "virtual", "--azure", "127.0.0.1:0",
        "--azure-folder", str(folder / "tls"), "--rate", "0",
    )  # fmt: skip
    with serving(*options, log=folder / "serve.log") as ready:
        server = Server(ready.control, ready.metadata)
        yield server
        server.close()
