"""The state that all connections of the endpoint share, and the tasks that they start."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fairwarning.core.faults import Fault
from fairwarning.core.model import EventId, InstanceName, ScopeId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.fair_share import FairShare
from fairwarning.metadata.fault_injection import FaultInjector
from fairwarning.metadata.freshness import Freshness
from fairwarning.metadata.handlers import Handlers
from fairwarning.metadata.http_parser import ReceivedRequest
from fairwarning.metadata.identity import Callers
from fairwarning.metadata.polls import KnownPolls, Polls
from fairwarning.metadata.rate_limit import RateLimit
from fairwarning.metadata.request_watchers import (
    ObservedRequest,
    RefusalWatcher,
    RefusedRequest,
    Watcher,
)
from fairwarning.metadata.requests import Head, Kind, Request, parse_request
from fairwarning.metadata.responses import Response, VaryingHeaders
from fairwarning.metadata.settings import EndpointRules

if TYPE_CHECKING:
    from fairwarning.metadata.connection import Connection

_log = logging.getLogger(__name__)

HINT = "the header Metadata: true is missing; `serve --lenient-post` accepts approvals without it"
TOLD_MAX = 10_000  # Then it begins anew, so that a large fleet costs little memory.


class OpenConnections:
    """All open connections, and how many each address has."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()
        self._counts: dict[str, int] = {}
        self._emptied = asyncio.Event()

    def __iter__(self) -> Iterator["Connection"]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def count(self, address: str) -> int:
        """Return how many open or reserved connections this address has."""
        return self._counts.get(address, 0)

    def reserve(self, address: str) -> None:
        """Count a connection before it exists, so that many at once can't exceed the limit."""
        self._counts[address] = self._counts.get(address, 0) + 1

    def release(self, address: str) -> None:
        """Reduce the count of this address by one."""
        left = self._counts.get(address, 0) - 1
        if left > 0:
            self._counts[address] = left
        else:
            self._counts.pop(address, None)

    def add(self, connection: "Connection") -> None:
        """Add a connection that `reserve` has already counted."""
        self._open.add(connection)

    def remove(self, connection: "Connection") -> None:
        """Remove a connection, and reduce the count of its address."""
        self._open.discard(connection)
        self.release(connection.address)
        if not self._open:
            self._emptied.set()

    async def emptied(self) -> None:
        """Return when no connection is open."""
        while self._open:
            self._emptied.clear()
            await self._emptied.wait()


class EndpointState:
    """The state of a node's endpoint. There is one object in each node."""

    def __init__(
        self,
        views: Views,
        handlers: Handlers,
        rules: EndpointRules,
        faults: Faults,
        age_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`age_s` returns how many seconds ago the documents were known to be complete."""
        varying = VaryingHeaders(handlers.seconds)
        self.rules = rules
        self.views = views
        self.handlers = handlers
        self.callers = Callers(views, rules)
        self.rate_limit = RateLimit(rules, varying)
        self.polls = Polls(self.rate_limit, varying)
        self.polls.on_sight = self._on_sight
        self.ready = self.polls.ready
        self.by_address = _by_own_address(views, rules)
        """Finds the instance of a source address. For a proxy's address it returns None."""
        self.fair_share = FairShare()
        self.connections = OpenConnections()
        self.known_polls = KnownPolls()
        self.known_by_bytes = self.known_polls.by_bytes
        """The dictionary `known_polls.by_bytes`. Every poll saves one lookup in this way."""
        self.faults = FaultInjector(faults, views, handlers, varying)
        self.watchers: list[Watcher] = []
        self.refusal_watchers: list[RefusalWatcher] = []
        self._hint_watchers: list[Watcher] = []
        self.lenient_post = LenientPostHints(rules)
        # A known poll is answered without parsing, so it would miss the faults if it stayed known.
        faults.listen(lambda _: self._forget_polls())
        self._tasks: set[asyncio.Task[None]] = set()
        self.freshness = Freshness(age_s, rules.stale_s_max, self._expire)
        self.is_expired = False
        """Whether the documents are too old to be served."""
        self.is_ending = False
        """Whether each connection ends with its next response."""

    @property
    def must_inspect(self) -> bool:
        """Whether every request must be parsed, because a fault is set or there is a watcher."""
        return self.faults.is_on or bool(self.watchers)

    def watch(self, watcher: Watcher, *, hears_refused: bool = False) -> None:
        """Call the watcher for every request from now on.

        With `hears_refused`, also for approvals that are refused for want of the Metadata header.
        """
        self.watchers.append(watcher)
        if hears_refused:
            self._hint_watchers.append(watcher)
        self._forget_polls()

    def unwatch(self, watcher: Watcher) -> None:
        """Stop calling this watcher. Raises ValueError if it does not watch."""
        self.watchers.remove(watcher)
        if watcher in self._hint_watchers:
            self._hint_watchers.remove(watcher)

    def tell_no_header(self, member: Member, request: Request, received: ReceivedRequest) -> None:
        """Log, and tell the watchers of refusals, that only a header was missing."""
        self.lenient_post.log(member)
        self.tell(member, request, received, None, hint=HINT)

    def tell(
        self,
        member: Member,
        request: Request,
        received: ReceivedRequest,
        fault: Fault | None,
        *,
        hint: str = "",
    ) -> None:
        """Call all watchers with a request and the fault that answers it, if any.

        A request with a hint was refused, and goes only to those who want to hear of such.
        """
        agents = received.head.values("user-agent")
        for watcher in self._hint_watchers if hint else self.watchers:
            watcher(
                ObservedRequest(
                    at_ms=self.handlers.now(),
                    scope_id=member.view.scope_id,
                    is_test=member.view.is_test,
                    instance=member.name,
                    kind=request.kind.name.lower(),
                    version=request.version.name if request.version else request.instance_version,
                    user_agent=agents[0] if agents else "",
                    body=received.body,
                    fault=fault.kind if fault else None,
                    hint=hint,
                )
            )

    def tell_refused(self, head: Head, refusal: Response) -> None:
        """Call all watchers of refusals."""
        for watcher in self.refusal_watchers:
            watcher(
                RefusedRequest(
                    method=head.method,
                    target=head.target,
                    status=refusal.status,
                    answer=refusal.body.decode("utf-8", "replace"),
                )
            )

    def remember_poll(self, raw: bytes, request: Request, *, closes: bool) -> None:
        """Remember that these bytes are this poll, unless every request must be parsed."""
        if self.must_inspect or self.is_ending or self.is_expired:
            return
        if self.known_polls.is_full:
            # Each real poller is known again after one parse, so a flood of others is harmless.
            self._forget_polls()
        self.known_polls.remember(raw, request, closes=closes)

    def _forget_polls(self) -> None:
        self.known_polls.clear()
        for connection in self.connections:
            connection.forget_poll()

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run the work in a task that `close` cancels."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_sight(self, member: Member, ids: tuple[EventId, ...]) -> None:
        self.spawn(self.handlers.report_seen(member, ids))

    def _expire(self, is_expired: bool) -> None:
        """Begin or stop to answer all polls with 503, because the documents are too old."""
        self.is_expired = is_expired
        if is_expired:
            # A known poll is answered without a look at this, so no poll may stay known.
            self._forget_polls()
            for connection in list(self.connections):
                connection.refuse_held_poll()

    def log_broken(self) -> None:
        """Log the exception that is being handled now. It is a bug of ours."""
        _log.exception("a request broke")

    def end_soon(self) -> None:
        """End each connection with its next response, and held polls now, with 304."""
        self.is_ending = True
        # A known poll is answered as if the connection went on, so no poll may stay known.
        self._forget_polls()
        for connection in list(self.connections):
            connection.end_held_poll_early()

    async def close(self) -> None:
        """Answer held polls with 503, cancel all tasks, and end every connection."""
        for connection in list(self.connections):
            connection.shut_down()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # One turn of the loop, so that the last responses are written before the cut.
        await asyncio.sleep(0)
        for connection in list(self.connections):
            connection.expire()


def _by_own_address(views: Views, rules: EndpointRules) -> Callable[[str], Member | None]:
    proxies, find = rules.proxy_addresses, views.by_address
    if not rules.proxy_secret or not proxies:
        return find
    return lambda address: None if address in proxies else find(address)


class LenientPostHints:
    """Logs once for each instance that its approval was refused for the Metadata header alone.

    From 2017-08-01 on such a POST is refused, as on Azure. Microsoft's sample in C# sends no
    header, and a program that was made from it fails without knowing why.
    """

    def __init__(self, rules: EndpointRules) -> None:
        self._lenient = replace(rules, is_header_optional_on_post=True)
        self._told: set[tuple[ScopeId, InstanceName]] = set()

    def approval_in(self, head: Head) -> Request | None:
        """Return the approval that the head would be with the header, or None if it is none."""
        found = parse_request(head, self._lenient)
        return found if isinstance(found, Request) and found.kind is Kind.APPROVE else None

    def log(self, member: Member) -> None:
        key = member.view.scope_id, member.name
        if key in self._told:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.clear()
        self._told.add(key)
        _log.warning("an approval of %s was refused: %s", member.name, HINT)
