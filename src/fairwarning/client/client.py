"""The two clients: one that blocks, one for an event loop. Both only carry out what `flow` says."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from fairwarning.client import changes
from fairwarning.client.changes import Seen
from fairwarning.client.discovery import endpoint_url
from fairwarning.client.flow import Flow, Outcome, Request, Response, approval, who_am_i
from fairwarning.client.model import Change, Document, EventsUnavailable, Instance, NotApproved
from fairwarning.client.reading import BadDocument, read_instance
from fairwarning.client.sockets import BlockingLink
from fairwarning.client.streams import AsyncLink
from fairwarning.client.wire import Address, Broken

_OK = 200


class _Standing:
    """What both clients remember."""

    def __init__(self, seen: Seen | None) -> None:
        self.flow = Flow()
        self.seen = seen or Seen()
        """What `watch` has told of so far. Keep it over a restart to hear each change once."""
        self._date: tuple[datetime, float] | None = None

    @property
    def api_version(self) -> str:
        """The newest that the service knows; settled by the first `get`."""
        return self.flow.api_version

    def now(self) -> datetime:
        """The service's time, so that a VM whose own clock is wrong misses nothing."""
        if self._date is None:
            return datetime.now(UTC)
        date, at_s = self._date
        return date + timedelta(seconds=time.monotonic() - at_s)

    def _take(self, request: Request, response: Response | Broken, took_s: float) -> Outcome:
        if isinstance(response, Broken):
            self.flow, outcome = self.flow.failed(str(response))
        else:
            held = "wait=" in request.target
            self.flow, outcome = self.flow.take(response, held=held, took_s=took_s)
            if outcome.date is not None:
                self._date = (outcome.date, time.monotonic())
        return outcome

    def _changes(self, outcome: Outcome) -> list[Change]:
        if outcome.document is None:
            return []
        self.seen, found = changes.step(self.seen, outcome.document, self.now())
        return found

    def _next_poll(self) -> Request:
        """While in doubt, a plain poll: the service must show what it has, and now."""
        return self.flow.poll(waits=not self.seen.is_in_doubt)

    def _pause_s(self, request: Request, outcome: Outcome) -> float:
        held = "wait=" in request.target
        chance = random.random()  # noqa: S311  (only to spread the load)
        return self.flow.pause_s(outcome, chance, held=held)

    def _approved(self, ids: tuple[str, ...], response: Response) -> None:
        if response.status != _OK:
            said = response.body[:200].decode("utf-8", "replace")
            raise NotApproved(f"the service answered {response.status} to the approval: {said}")
        for id in ids:
            self.seen = changes.approved(self.seen, id)


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
        self.url = self._link.address.url

    def get(self) -> Document:
        """The document as it is now. Raises EventsUnavailable."""
        while True:
            outcome = self._poll(self.flow.poll(waits=False))
            if not outcome.asks_again:
                return _document(outcome)

    def approve(self, *event_ids: str) -> None:
        """Agrees that these events may start now. Raises NotApproved or EventsUnavailable."""
        try:
            response = self._link.ask(approval(event_ids, self.api_version))
        except Broken as problem:
            raise EventsUnavailable(str(problem)) from None
        self._approved(event_ids, response)

    def instance(self) -> Instance:
        """Who this VM is. Raises EventsUnavailable."""
        try:
            return _instance(self._link.ask(who_am_i()))
        except Broken as problem:
            raise EventsUnavailable(str(problem)) from None

    def watch(self) -> Generator[Change, None, None]:
        """Every change, once, for ever. Outages of the service are waited out."""
        while True:
            request = self._next_poll()
            outcome = self._poll(request)
            yield from self._changes(outcome)
            if pause_s := self._pause_s(request, outcome):
                time.sleep(pause_s)

    def _poll(self, request: Request) -> Outcome:
        began = time.monotonic()
        try:
            response: Response | Broken = self._link.ask(request)
        except Broken as problem:
            response = problem
        return self._take(request, response, time.monotonic() - began)

    def close(self) -> None:
        self._link.close()

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
        self.url = self._link.address.url

    async def get(self) -> Document:
        while True:
            outcome = await self._poll(self._asking, self.flow.poll(waits=False))
            if not outcome.asks_again:
                return _document(outcome)

    async def approve(self, *event_ids: str) -> None:
        try:
            response = await self._asking.ask(approval(event_ids, self.api_version))
        except Broken as problem:
            raise EventsUnavailable(str(problem)) from None
        self._approved(event_ids, response)

    async def instance(self) -> Instance:
        try:
            return _instance(await self._asking.ask(who_am_i()))
        except Broken as problem:
            raise EventsUnavailable(str(problem)) from None

    async def watch(self) -> AsyncGenerator[Change, None]:
        while True:
            request = self._next_poll()
            outcome = await self._poll(self._link, request)
            for change in self._changes(outcome):
                yield change
            if pause_s := self._pause_s(request, outcome):
                await asyncio.sleep(pause_s)

    async def _poll(self, link: AsyncLink, request: Request) -> Outcome:
        began = time.monotonic()
        try:
            response: Response | Broken = await link.ask(request)
        except Broken as problem:
            response = problem
        return self._take(request, response, time.monotonic() - began)

    async def close(self) -> None:
        await self._link.close()
        await self._asking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
