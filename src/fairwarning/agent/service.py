"""The client, as the agent uses it: it counts, and knows Fairwarning's own extension."""

import json
import time
from collections.abc import Callable
from urllib.parse import quote

from fairwarning.agent import logs
from fairwarning.agent.durations import human_s
from fairwarning.agent.metrics import Figures
from fairwarning.client import AsyncScheduledEvents, EventsUnavailable, Seen
from fairwarning.client.flow import Outcome, Request
from fairwarning.client.http import Broken

_PATH = "/metadata/fairwarning/drained"
_NOT_KNOWN = (400, 404, 405, 501)


class NotFairwarning(Exception):
    """The service does not know who of an event is ready."""


class Service(AsyncScheduledEvents):
    def __init__(self, url: str | None, *, seen: Seen, figures: Figures) -> None:
        super().__init__(url, seen=seen)
        self._figures = figures
        self._outages = Outages()
        self.on_answer: Callable[[], None] = lambda: None
        """Called after each poll, whatever came of it."""
        self.answers = 0
        """Polls that told what is, so far."""
        self.trouble = ""
        """Of the last poll."""

    @property
    def has_answered(self) -> bool:
        return self.answers > 0

    async def follow(self) -> None:
        async for _ in self.watch():
            self.on_answer()

    async def report(self, event_id: str) -> tuple[str, ...]:
        """Says that this VM is ready; returns who is not. Raises as `waiting` does."""
        body = json.dumps({"EventId": event_id}).encode()
        headers = {"Metadata": "true", "Content-Type": "application/json"}
        return await self._drained(Request(method="POST", target=_PATH, headers=headers, body=body))

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        """Who of the event is not ready. Raises NotFairwarning or EventsUnavailable."""
        target = f"{_PATH}?EventId={quote(event_id)}"
        return await self._drained(
            Request(method="GET", target=target, headers={"Metadata": "true"})
        )

    async def _drained(self, request: Request) -> tuple[str, ...]:
        try:
            response = await self._side_connection.ask(request)
        except Broken as problem:
            raise EventsUnavailable(str(problem)) from None
        if response.status in _NOT_KNOWN:
            raise NotFairwarning
        if response.status != 200:
            raise EventsUnavailable(f"the service answered {response.status}")
        try:
            return tuple(json.loads(response.body)["Waiting"])
        except (ValueError, KeyError, TypeError):
            raise NotFairwarning from None

    def _on_outcome(self, outcome: Outcome) -> None:
        self.trouble = outcome.trouble
        is_answer = outcome.document is not None or outcome.is_unchanged
        self.answers += is_answer
        self._figures.polled(is_answer=is_answer, is_failure=bool(outcome.trouble))
        self._outages.polled(outcome.trouble, is_answer=is_answer)
        self.on_answer()


# When the service tells nothing, and for how long: two lines of the log, however long it is.
class Outages:
    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._began_s: float | None = None

    def polled(self, trouble: str, *, is_answer: bool) -> None:
        """A poll may be neither: a question that is put again in other words ends nothing."""
        if trouble and self._began_s is None:
            self._began_s = self._monotonic_s()
            logs.warn(f"the service tells nothing: {trouble}", trouble=trouble)
        elif is_answer and self._began_s is not None:
            lasted_s = self._monotonic_s() - self._began_s
            self._began_s = None
            logs.say(f"the service answers again, after {human_s(lasted_s)}", lasted_s=lasted_s)
