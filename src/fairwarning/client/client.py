"""The two clients: `ScheduledEvents` blocks, `AsyncScheduledEvents` needs an event loop.

Both only carry out what `polling.py` and `changes.py` decide.
"""

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
from fairwarning.client.connections import AsyncConnection, BlockingConnection
from fairwarning.client.discovery import endpoint_url
from fairwarning.client.http import Address, Broken
from fairwarning.client.model import Change, Document, EventsUnavailable, Instance, NotApproved
from fairwarning.client.parse_document import BadDocument, read_date, read_instance
from fairwarning.client.polling import (
    Outcome,
    PollState,
    Request,
    Response,
    approval,
    instance_request,
)
from fairwarning.client.service_time import ServiceTime
from fairwarning.client.watch_state import Seen

_OK = 200
_SERVER_ERROR = 500


class _ClientState:
    """The state of both clients, and how they process a response."""

    def __init__(self, seen: Seen | None) -> None:
        self.poll_state = PollState()
        self.seen = seen or Seen()
        """What `watch` has reported so far. Save it, and pass it to the client after a restart, to
        get each change only once.
        """
        self._time = ServiceTime()
        self._lock = threading.Lock()
        """Held while `poll_state` or `seen` is replaced, because one thread may watch while others
        approve. It is never held while we wait for the caller or the service.
        """

    @property
    def api_version(self) -> str:
        """The newest api-version that the service knows. Before the first document, we guess."""
        return self.poll_state.api_version

    def now(self) -> datetime:
        """Return the service's time, because the VM's own clock may be wrong.

        Before the first response with a date, it is the time of the VM's clock.
        """
        return self._time.now(time.monotonic()) or datetime.now(UTC)

    def _take(self, request: Request, response: Response | Broken, took_s: float) -> Outcome:
        """Process the response to a poll of `watch`, and return what it means."""
        with self._lock:
            self.poll_state, outcome = self._judge(request, response, took_s)
        self._on_outcome(outcome)
        return outcome

    def _take_single(self, request: Request, response: Response | Broken) -> Outcome:
        """Process the response to `get`, and return what it means.

        `watch` still reports the changes of a document that `get` returned.
        """
        with self._lock:
            asked, outcome = self._judge(request, response, 0.0)
            self.poll_state = self.poll_state.with_single_request(asked)
        self._on_outcome(outcome)
        return outcome

    def _judge(
        self, request: Request, response: Response | Broken, took_s: float
    ) -> tuple[PollState, Outcome]:
        if isinstance(response, Broken):
            return self.poll_state.failed(str(response))
        if date := read_date(response.headers.get("date")):
            self._time.update(date, time.monotonic())
        held = "wait=" in request.target
        return self.poll_state.take(response, held=held, took_s=took_s, asked=request.version)

    def _on_outcome(self, outcome: Outcome) -> None:
        """Do nothing. A subclass can override this to count the responses."""

    def _changes(self, outcome: Outcome) -> Iterator[Change]:
        """Yield the changes. When a change is yielded, `seen` contains it, but no later change."""
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
                self.seen = changes.with_change(self.seen, change, after)
            yield change
        ended = before.events.keys() - after.events.keys()
        with self._lock:
            # Keep approvals that were made meanwhile, except those of events that have ended.
            approved = self.seen.approved.difference(ended, after.over)
            self.seen = replace(after, approved=approved)

    def _begin_watch(self) -> None:
        with self._lock:
            self.poll_state = self.poll_state.restarted()

    def _next_poll(self) -> Request:
        """Return the next poll. While a document is in doubt, the service may not hold the poll."""
        return self.poll_state.poll(waits=not self.seen.is_in_doubt)

    def _pause_s(self, request: Request, outcome: Outcome) -> float:
        held = "wait=" in request.target
        chance = random.random()  # noqa: S311  (only to spread the load)
        return self.poll_state.pause_s(outcome, chance, held=held)

    def _begin_approval(self, ids: tuple[str, ...]) -> frozenset[str]:
        """Note the approvals in `seen`, and return the ids that were not approved before.

        This happens before the request is sent. An event may start and end before the response is
        here, and `watch` must not report that as a cancellation.
        """
        with self._lock:
            before = self.seen.approved
            self.seen = changes.approved(self.seen, *ids)
            return self.seen.approved - before

    def _end_approval(self, new: frozenset[str], response: Response | Broken) -> None:
        """Process the response to an approval.

        Raises NotApproved if the service refused, and EventsUnavailable if no response came. Only
        a status below 500 takes the approval back: after any other failure, the service may still
        have accepted it.
        """
        if isinstance(response, Broken):
            raise EventsUnavailable(str(response))
        if response.status == _OK:
            return
        if response.status < _SERVER_ERROR:
            with self._lock:
                self.seen = changes.not_approved(self.seen, new)
        said = response.body[:200].decode("utf-8", "replace")
        raise NotApproved(f"the service answered {response.status} to the approval: {said}")


def _ask(link: BlockingConnection, request: Request) -> Response | Broken:
    try:
        return link.ask(request)
    except Broken as problem:
        return problem


async def _ask_async(link: AsyncConnection, request: Request) -> Response | Broken:
    try:
        return await link.ask(request)
    except Broken as problem:
        return problem


def _response(response: Response | Broken) -> Response:
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


class ScheduledEvents(_ClientState):
    """The client for programs without an event loop. Several threads may use one object.

    with ScheduledEvents() as events:
        for change in events.watch():
            ...
            events.approve(change.event.id)
    """

    def __init__(self, url: str | None = None, *, seen: Seen | None = None) -> None:
        """Create a client. Raises BadAddress (a ValueError) if the URL can't be used.

        `url` is the service's address, such as http://127.0.0.1:9254/vm/web-0. Without it, the
        environment, http://169.254.169.254 and DHCP are tried (`discovery.py`). `seen` is the
        `seen` of an earlier client, so that the changes in it are not reported again.
        """
        super().__init__(seen)
        self._poll_connection = BlockingConnection(Address(url or endpoint_url()))
        self._side_connection = BlockingConnection(self._poll_connection.address)
        """A second connection, so that a thread can approve while the service holds a poll."""
        self._approving = threading.Lock()
        """Held during an approval. Otherwise a refusal could also take back an approval of the same
        event by another thread.
        """
        self.url = self._poll_connection.address.url

    def get(self) -> Document:
        """Return the present document. Raises EventsUnavailable if the service gives none."""
        while True:
            request = self.poll_state.poll(waits=False)
            outcome = self._take_single(request, _ask(self._side_connection, request))
            if not outcome.asks_again:
                return _document(outcome)
            time.sleep(self._pause_s(request, outcome))

    def approve(self, *event_ids: str) -> None:
        """Approve these events, so that they may start now.

        Raises NotApproved if the service refuses, and EventsUnavailable if no response comes.
        """
        with self._approving:
            new = self._begin_approval(event_ids)
            response = _ask(self._side_connection, approval(event_ids, self.api_version))
            self._end_approval(new, response)

    def instance(self) -> Instance:
        """Return what the service knows about this VM. Raises EventsUnavailable if it can't."""
        return _instance(_response(_ask(self._side_connection, instance_request())))

    def watch(self) -> Generator[Change, None, None]:
        """Yield every change once. This never ends: if the service fails, it keeps trying."""
        self._begin_watch()
        while True:
            request = self._next_poll()
            began = time.monotonic()
            response = _ask(self._poll_connection, request)
            outcome = self._take(request, response, time.monotonic() - began)
            yield from self._changes(outcome)
            if pause_s := self._pause_s(request, outcome):
                time.sleep(pause_s)

    def close(self) -> None:
        """Close the connections. A request that another thread waits for fails at once."""
        self._poll_connection.close()
        self._side_connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()


class AsyncScheduledEvents(_ClientState):
    """The client for an event loop. `watch` may be cancelled at any point.

    async with AsyncScheduledEvents() as events:
        async for change in events.watch():
            ...
            await events.approve(change.event.id)
    """

    def __init__(self, url: str | None = None, *, seen: Seen | None = None) -> None:
        """Create a client. The arguments are the same as for `ScheduledEvents`."""
        super().__init__(seen)
        self._poll_connection = AsyncConnection(Address(url or endpoint_url()))
        self._side_connection = AsyncConnection(self._poll_connection.address)
        """A second connection, so that nothing waits behind a poll that the service holds."""
        self._approving = asyncio.Lock()
        self.url = self._poll_connection.address.url

    async def get(self) -> Document:
        """Return the present document. Raises EventsUnavailable if the service gives none."""
        while True:
            request = self.poll_state.poll(waits=False)
            outcome = self._take_single(request, await _ask_async(self._side_connection, request))
            if not outcome.asks_again:
                return _document(outcome)
            await asyncio.sleep(self._pause_s(request, outcome))

    async def approve(self, *event_ids: str) -> None:
        """Approve these events, so that they may start now.

        Raises NotApproved if the service refuses, and EventsUnavailable if no response comes.
        """
        async with self._approving:
            new = self._begin_approval(event_ids)
            response = await _ask_async(
                self._side_connection, approval(event_ids, self.api_version)
            )
            self._end_approval(new, response)

    async def instance(self) -> Instance:
        """Return what the service knows about this VM. Raises EventsUnavailable if it can't."""
        return _instance(_response(await _ask_async(self._side_connection, instance_request())))

    async def watch(self) -> AsyncGenerator[Change, None]:
        """Yield every change once. This never ends: if the service fails, it keeps trying."""
        self._begin_watch()
        while True:
            request = self._next_poll()
            began = time.monotonic()
            response = await _ask_async(self._poll_connection, request)
            outcome = self._take(request, response, time.monotonic() - began)
            for change in self._changes(outcome):
                yield change
            if pause_s := self._pause_s(request, outcome):
                await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._poll_connection.close()
        await self._side_connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
