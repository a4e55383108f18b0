"""The agent's client. It counts polls, logs outages, and can use Fairwarning's own extension."""

import json
import time
from collections.abc import Callable
from urllib.parse import quote

from fairwarning.agent import logs
from fairwarning.agent.metrics import Metrics
from fairwarning.client import AsyncScheduledEvents, EventsUnavailable, Seen
from fairwarning.client.http import Broken
from fairwarning.client.polling import Outcome, Request
from fairwarning.common.durations import human_s

_PATH = "/metadata/fairwarning/drained"
_NOT_KNOWN = (400, 404, 405, 501)


class NotFairwarning(Exception):
    """The service is not Fairwarning, so it does not know which VMs of an event are ready."""


class AgentClient(AsyncScheduledEvents):
    def __init__(self, url: str | None, *, seen: Seen, metrics: Metrics) -> None:
        super().__init__(url, seen=seen)
        self._metrics = metrics
        self._outages = Outages()
        self.on_answer: Callable[[], None] = lambda: None
        """Called after each poll, even if it failed."""
        self.answers = 0
        """How many polls got a document or a 304."""
        self.trouble = ""
        """The error of the last poll. It is empty if there was none."""

    @property
    def has_answered(self) -> bool:
        return self.answers > 0

    async def follow(self) -> None:
        async for _ in self.watch():
            self.on_answer()

    async def report(self, event_id: str) -> tuple[str, ...]:
        """Report that this VM is ready, and return the VMs of the event that are not.

        Raises the same exceptions as `waiting`.
        """
        body = json.dumps({"EventId": event_id}).encode()
        headers = {"Metadata": "true", "Content-Type": "application/json"}
        return await self._drained(Request(method="POST", target=_PATH, headers=headers, body=body))

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        """Return the VMs of the event that are not ready.

        Raises NotFairwarning if the service has no such extension, and EventsUnavailable if it
        gives no usable response.
        """
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
        self._metrics.polled(is_answer=is_answer, is_failure=bool(outcome.trouble))
        self._outages.polled(outcome.trouble, is_answer=is_answer)
        self.on_answer()


class Outages:
    """Logs two lines for each outage of the service: when it begins and when it ends."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._began_s: float | None = None

    def polled(self, trouble: str, *, is_answer: bool) -> None:
        """Process the result of a poll. `trouble` begins an outage, and `is_answer` ends it."""
        if trouble and self._began_s is None:
            self._began_s = self._monotonic_s()
            logs.warn(f"the service tells nothing: {trouble}", trouble=trouble)
        elif is_answer and self._began_s is not None:
            lasted_s = self._monotonic_s() - self._began_s
            self._began_s = None
            logs.say(f"the service answers again, after {human_s(lasted_s)}", lasted_s=lasted_s)
