"""The two clients: one that blocks, one for an event loop. Both only carry out what `flow` says."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from fairwarning.client import changes
from fairwarning.client.async_connection import AsyncLink
from fairwarning.client.blocking_connection import BlockingLink
from fairwarning.client.discovery import endpoint_url
from fairwarning.client.flow import Flow, Outcome, Request, Response, approval, who_am_i
from fairwarning.client.http import Address, Broken
from fairwarning.client.model import (
    Change,
    Document,
    EventsUnavailable,
    Instance,
    NotApproved,
)
from fairwarning.client.parse_document import BadDocument, read_date, read_instance
from fairwarning.client.service_time import ServiceTime
from fairwarning.client.watch_state import Seen

_OK = 200
_SERVER_ERROR = 500


class _Standing:
    """What both clients remember."""

    def __init__(self, seen: Seen | None) -> None:
        self.flow = Flow()
        self.seen = seen or Seen()
        """What `watch` has told of so far. Keep it over a restart to hear each change once."""
        self._time = ServiceTime()
        self._lock = threading.Lock()
        """Held while `flow` or `seen` is replaced by what follows from it: one thread may watch
        while others ask and approve. Never held while a caller or the service is waited for."""

    @property
    def api_version(self) -> str:
        """The newest that the service knows; settled by the first `get`."""
        return self.flow.api_version

    def now(self) -> datetime:
        """The service's time, so that a VM whose own clock is wrong misses nothing."""
        return self._time.now(time.monotonic()) or datetime.now(UTC)

    def _take(self, request: Request, response: Response | Broken, took_s: float) -> Outcome:
        """The answer to a poll of the watch."""
        with self._lock:
            self.flow, outcome = self._judge(request, response, took_s)
        self._heard(outcome)
        return outcome

    def _single(self, request: Request, response: Response | Broken) -> Outcome:
        """The answer to a question besides the watch, which must still hear of what it shows."""
        with self._lock:
            asked, outcome = self._judge(request, response, 0.0)
            self.flow = self.flow.besides(asked)
        self._heard(outcome)
        return outcome

    def _judge(
        self, request: Request, response: Response | Broken, took_s: float
    ) -> tuple[Flow, Outcome]:
        if isinstance(response, Broken):
            return self.flow.failed(str(response))
        if date := read_date(response.headers.get("date")):
            self._time.hear(date, time.monotonic())
        held = "wait=" in request.target
        return self.flow.take(response, held=held, took_s=took_s, asked=request.version)

    def _heard(self, outcome: Outcome) -> None:
        """Called after each answer; for those who count them."""

    def _changes(self, outcome: Outcome) -> Iterator[Change]:
        """While a change is with the caller, `seen` has it and not the next one."""
        before, now = self.seen, self.now()
        if outcome.document is not None:
            after, found = changes.step(before, outcome.document, now)
        elif outcome.is_empty:
            after, found = changes.step_without_document(before, now)
        else:
            return
        if after is before:
            return
        for change in found:
            with self._lock:
                self.seen = changes.told(self.seen, change, after)
            yield change
        ended = before.events.keys() - after.events.keys()
        with self._lock:
            # What was approved meanwhile counts too, but for what will not come again.
            approved = self.seen.approved.difference(ended, after.over)
            self.seen = replace(after, approved=approved)

    def _begin_watch(self) -> None:
        with self._lock:
            self.flow = self.flow.afresh()

    def _next_poll(self) -> Request:
        """While in doubt, a plain poll: the service must show what it has, and now."""
        return self.flow.poll(waits=not self.seen.is_in_doubt)

    def _pause_s(self, request: Request, outcome: Outcome) -> float:
        held = "wait=" in request.target
        chance = random.random()  # noqa: S311  (only to spread the load)
        return self.flow.pause_s(outcome, chance, held=held)

    def _begin_approval(self, ids: tuple[str, ...]) -> frozenset[str]:
        """Before the service is asked: an event may start and end before its answer is here, and
        the watch must not take that for a cancellation. Returns the ids that are new."""
        with self._lock:
            before = self.seen.approved
            self.seen = changes.approved(self.seen, *ids)
            return self.seen.approved - before

    def _end_approval(self, new: frozenset[str], response: Response | Broken) -> None:
        """An approval that the service did not refuse counts: it may have been heard."""
        if isinstance(response, Broken):
            raise EventsUnavailable(str(response))
        if response.status == _OK:
            return
        if response.status < _SERVER_ERROR:
            with self._lock:
                self.seen = changes.not_approved(self.seen, new)
        said = response.body[:200].decode("utf-8", "replace")
        raise NotApproved(f"the service answered {response.status} to the approval: {said}")


def _asked(link: BlockingLink, request: Request) -> Response | Broken:
    try:
        return link.ask(request)
    except Broken as problem:
        return problem


async def _asked_async(link: AsyncLink, request: Request) -> Response | Broken:
    try:
        return await link.ask(request)
    except Broken as problem:
        return problem


def _whole(response: Response | Broken) -> Response:
    if isinstance(response, Broken):
        raise EventsUnavailable(str(response))
    return response


def _document(outcome: Outcome) -> Document:
    if outcome.document is None:
        raise EventsUnavailable(outcome.trouble or "the service gave no document")
    return outcome.document


def _instance(response: Response) -> Instance:
    if response.status != _OK:
        raise EventsUnavailable(f"the service answered {response.status} to who we are")
    try:
        return read_instance(response.body)
    except BadDocument as problem:
        raise EventsUnavailable(str(problem)) from None


class ScheduledEvents(_Standing):
    """For programs without an event loop.

    with ScheduledEvents() as events:
        for change in events.watch():
            ...
            events.approve(change.event.id)
    """

    def __init__(self, url: str | None = None, *, seen: Seen | None = None) -> None:
        """`url` replaces http://169.254.169.254; see `discovery` for what is tried without it."""
        super().__init__(seen)
        self._link = BlockingLink(Address(url or endpoint_url()))
        self._asking = BlockingLink(self._link.address)
        """Another thread may approve while the service holds a poll."""
        self._approving = threading.Lock()
        """One approval at a time, or a refused one would take back another of the same event."""
        self.url = self._link.address.url

    def get(self) -> Document:
        """The document as it is now. Raises EventsUnavailable."""
        while True:
            request = self.flow.poll(waits=False)
            outcome = self._single(request, _asked(self._asking, request))
            if not outcome.asks_again:
                return _document(outcome)
            time.sleep(self._pause_s(request, outcome))

    def approve(self, *event_ids: str) -> None:
        """Agrees that these events may start now. Raises NotApproved or EventsUnavailable."""
        with self._approving:
            new = self._begin_approval(event_ids)
            response = _asked(self._asking, approval(event_ids, self.api_version))
            self._end_approval(new, response)

    def instance(self) -> Instance:
        """Who this VM is. Raises EventsUnavailable."""
        return _instance(_whole(_asked(self._asking, who_am_i())))

    def watch(self) -> Generator[Change, None, None]:
        """Every change, once, for ever. Outages of the service are waited out."""
        self._begin_watch()
        while True:
            request = self._next_poll()
            began = time.monotonic()
            response = _asked(self._link, request)
            outcome = self._take(request, response, time.monotonic() - began)
            yield from self._changes(outcome)
            if pause_s := self._pause_s(request, outcome):
                time.sleep(pause_s)

    def close(self) -> None:
        self._link.close()
        self._asking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()


class AsyncScheduledEvents(_Standing):
    """The same for an event loop; `watch` may be cancelled at any point."""

    def __init__(self, url: str | None = None, *, seen: Seen | None = None) -> None:
        super().__init__(seen)
        self._link = AsyncLink(Address(url or endpoint_url()))
        self._asking = AsyncLink(self._link.address)
        """Approvals and questions do not wait behind a poll that the service holds."""
        self._approving = asyncio.Lock()
        self.url = self._link.address.url

    async def get(self) -> Document:
        while True:
            request = self.flow.poll(waits=False)
            outcome = self._single(request, await _asked_async(self._asking, request))
            if not outcome.asks_again:
                return _document(outcome)
            await asyncio.sleep(self._pause_s(request, outcome))

    async def approve(self, *event_ids: str) -> None:
        async with self._approving:
            new = self._begin_approval(event_ids)
            response = await _asked_async(self._asking, approval(event_ids, self.api_version))
            self._end_approval(new, response)

    async def instance(self) -> Instance:
        return _instance(_whole(await _asked_async(self._asking, who_am_i())))

    async def watch(self) -> AsyncGenerator[Change, None]:
        self._begin_watch()
        while True:
            request = self._next_poll()
            began = time.monotonic()
            response = await _asked_async(self._link, request)
            outcome = self._take(request, response, time.monotonic() - began)
            for change in self._changes(outcome):
                yield change
            if pause_s := self._pause_s(request, outcome):
                await asyncio.sleep(pause_s)

    async def close(self) -> None:
        await self._link.close()
        await self._asking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
