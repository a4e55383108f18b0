"""What all connections of the endpoint share."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.faults import DOCUMENT_KINDS, Fault
from fairwarning.core.model import EventId
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.fair_share import Turns
from fairwarning.metadata.fault_injection import Faulty
from fairwarning.metadata.handlers import Endpoint
from fairwarning.metadata.http_parser import Received
from fairwarning.metadata.identity import Callers
from fairwarning.metadata.polls import Polls
from fairwarning.metadata.request_watchers import Asked, Watcher
from fairwarning.metadata.requests import Ask, Kind
from fairwarning.metadata.responses import Answer, Stamp
from fairwarning.metadata.settings import REMEMBERED_POLLS_MAX, EndpointRules

if TYPE_CHECKING:
    from fairwarning.metadata.connection import Connection

_log = logging.getLogger(__name__)


def _by_own_address(views: Views, rules: EndpointRules) -> Callable[[str], Member | None]:
    proxies, find = rules.proxy_addresses, views.by_address
    if not rules.proxy_secret or not proxies:
        return find
    return lambda address: None if address in proxies else find(address)


class Service:
    def __init__(
        self, views: Views, endpoint: Endpoint, rules: EndpointRules, faults: Faults
    ) -> None:
        self.rules = rules
        self.views = views
        self.endpoint = endpoint
        self.callers = Callers(views, rules)
        self.polls = Polls(rules, Stamp(endpoint.seconds))
        self.polls.on_sight = self._on_sight
        self.ready = self.polls.ready
        self.by_address = _by_own_address(views, rules)
        """Who asks from an address of his own: behind a proxy's that is not the question."""
        self.turns = Turns()
        self.connections: set[Connection] = set()
        self.remembered: dict[bytes, tuple[Ask, bool]] = {}
        """The bytes of polls, with their meaning and whether they end the connection."""
        self.has_loopback = False
        """Whether a listener is on loopback, where not everybody who knows a name is answered."""
        self._lone: dict[bytes, Ask] = {}
        """Those of them that end it, and that memory answers at once for whoever has an address."""
        self.last_lone = b""
        self.last_ask: Ask | None = None
        """The last of these: most pollers of a fleet are the same program, and send the same."""
        self.faulty = Faulty(faults, views, VERSIONS)
        self.watchers: list[Watcher] = []
        # A poll that is known by its bytes is answered unseen, so while faults are set none is.
        faults.listen(lambda _: self._forget_polls())
        self._counts: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_careful(self) -> bool:
        """Every request must be looked at: faults are set, or somebody watches."""
        return self.faulty.is_on or bool(self.watchers)

    def watch(self, watcher: Watcher) -> None:
        self.watchers.append(watcher)
        self._forget_polls()

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.remove(watcher)

    def tell(self, member: Member, ask: Ask, received: Received, fault: Fault | None) -> None:
        agents = received.head.values("user-agent")
        for watcher in self.watchers:
            watcher(
                Asked(
                    at_ms=self.endpoint.now(),
                    scope_id=member.view.scope_id,
                    is_test=member.view.is_test,
                    instance=member.name,
                    kind=ask.kind.name.lower(),
                    version=ask.version.name if ask.version else ask.instance_version,
                    user_agent=agents[0] if agents else "",
                    body=received.body,
                    fault=fault.kind if fault else None,
                )
            )

    async def spoilt(self, fault: Fault, ask: Ask, member: Member, body: bytes) -> Answer:
        """What an injected fault makes of the answer. Raises StoreDown."""
        if ask.kind is not Kind.EVENTS:
            return await self.endpoint.answer(ask, member, body)
        await self.endpoint.activate(member)
        assert ask.version is not None
        if fault.kind in DOCUMENT_KINDS:
            return self.faulty.document(fault, member, ask.version)
        view = member.view
        if self.polls.is_behind(ask, view):
            await self.endpoint.catch_up(ask.tag, view)
        return Answer(status=200, body=view.document(ask.version), headers={"ETag": view.tag})

    def join(self, connection: "Connection") -> None:
        self.connections.add(connection)

    def leave(self, connection: "Connection") -> None:
        self.connections.discard(connection)
        self.exit(connection.address)

    def enter(self, address: str) -> None:
        """Before there is a connection object: many may be accepted in one turn."""
        self._counts[address] = self.count(address) + 1

    def exit(self, address: str) -> None:
        left = self.count(address) - 1
        if left > 0:
            self._counts[address] = left
        else:
            self._counts.pop(address, None)

    def count(self, address: str) -> int:
        """How many connections this address has open."""
        return self._counts.get(address, 0)

    def remember(self, raw: bytes, ask: Ask, *, closes: bool) -> None:
        if self.is_careful:
            return
        if len(self.remembered) >= REMEMBERED_POLLS_MAX:
            # Real pollers are back after one parse each; a flood of odd ones gains nothing.
            self._forget_polls()
        self.remembered[raw] = (ask, closes)
        is_refused = ask.is_foreign and self.has_loopback
        if closes and ask.is_plain and not ask.wait_s and not is_refused:
            self._lone[raw] = ask

    def find_lone(self, raw: bytes) -> Ask | None:
        ask = self._lone.get(raw)
        if ask is not None:
            self.last_lone, self.last_ask = raw, ask
        return ask

    def _forget_polls(self) -> None:
        self.remembered.clear()
        self._lone.clear()
        self.last_lone, self.last_ask = b"", None
        for connection in self.connections:
            connection.unlearn()

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_sight(self, member: Member, ids: tuple[EventId, ...]) -> None:
        self.spawn(self.endpoint.report_seen(member, ids))

    def log_broken(self) -> None:
        _log.exception("a request broke")

    async def close(self) -> None:
        """Who waits is told to come again; what was begun is not finished."""
        for connection in list(self.connections):
            connection.shut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
        for connection in list(self.connections):
            connection.expire()
