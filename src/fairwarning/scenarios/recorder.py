"""Records on a VM what its endpoint says over time. It changes nothing on the endpoint.

It uses only the client library, so it runs on any VM without a server. A line is a JSON object.
Its `kind` is `begin`, `document` (for each one that differs from the last), `outage`, `back` or
`end`. `date` is the time by the service's clock, or null without an answer; the playback uses it.
`s` is the number of seconds since the beginning, by a monotonic clock. `at` is the time by the
VM's clock.
"""

import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fairwarning.client.connections import BlockingConnection
from fairwarning.client.http import Address, Broken
from fairwarning.client.parse_document import BadDocument, read_date, read_instance
from fairwarning.client.polling import (
    VERSIONS,
    WAIT_S,
    Outcome,
    PollState,
    Response,
    instance_request,
)

Json = dict[str, Any]
Write = Callable[[Json], None]


class Recorder:
    """Polls one endpoint and writes a line for each change."""

    def __init__(
        self,
        url: str,
        write: Write,
        *,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`write` stores a line. It must not return before the line is on disk."""
        self._link = BlockingConnection(Address(url))
        self._write = write
        self._seconds = seconds
        self._sleep = sleep
        self._began_s = seconds()
        self._flow = PollState()
        self._last = b""
        self._date: datetime | None = None
        """The date of the last response. It is None if there was no response."""
        self._trouble = ""
        self.documents = 0
        self.outages = 0

    def run(self, for_s: float | None = None) -> None:
        """Record for `for_s` seconds, or without end. It writes the line `end` also on an error."""
        self._began_s = self._seconds()
        self._note("begin", endpoint=self._link.address.url, instance=self._who())
        try:
            while (left_s := self._left_s(for_s)) > 0:
                self._sleep(min(self._poll(left_s), max(0.0, self._left_s(for_s))))
        finally:
            self._note("end")
            self._link.close()

    def _left_s(self, for_s: float | None) -> float:
        return float("inf") if for_s is None else self._began_s + for_s - self._seconds()

    def _poll(self, left_s: float) -> float:
        """Poll once, and return how long to wait before the next poll."""
        request = self._flow.poll(waits=left_s > WAIT_S)
        held = "wait=" in request.target
        began_s = self._seconds()
        try:
            response = self._link.ask(request)
        except Broken as problem:
            self._date = None
            self._flow, outcome = self._flow.failed(str(problem))
            self._take(b"", outcome)
        else:
            self._flow, outcome = self._flow.take(
                response, held=held, took_s=self._seconds() - began_s, asked=request.version
            )
            self._date = read_date(response.headers.get("date"))
            self._take(response.body, outcome, VERSIONS[request.version or 0])
        chance = random.random()  # noqa: S311  (only to spread the load)
        return self._flow.pause_s(outcome, chance, held=held)

    def _take(self, body: bytes, outcome: Outcome, version: str = "") -> None:
        if outcome.trouble:
            if not self._trouble:
                self.outages += 1
                self._note("outage", trouble=outcome.trouble)
            self._trouble = outcome.trouble
        elif self._trouble and not outcome.asks_again:
            self._trouble = ""
            self._note("back")
        if outcome.document is not None and body != self._last:
            self._last = body
            self.documents += 1
            document = json.loads(body.decode("utf-8-sig"))
            self._note("document", version=version, document=document)

    def _who(self) -> str | None:
        try:
            answer: Response = self._link.ask(instance_request())
            self._date = read_date(answer.headers.get("date"))
            return read_instance(answer.body).name if answer.status == 200 else None
        except (Broken, BadDocument):
            return None

    def _note(self, kind: str, **more: Any) -> None:
        since_s = round(self._seconds() - self._began_s, 3)
        date = None if self._date is None else _text(self._date)
        at = _text(datetime.now(UTC))
        self._write({"kind": kind, "at": at, "s": since_s, "date": date, **more})


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
