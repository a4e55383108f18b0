"""Two real nodes on one PostgreSQL, one of which hears of its commit later than its lease."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairwarning.core.commands import Activate, Approve, Command, Schedule
from fairwarning.core.instants import HOUR_MS
from fairwarning.core.limits import Timing
from fairwarning.core.model import ENGINE, EventId, EventType, NodeId, Scope
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Alarm, Found, Lease, Moment, Order, Step
from fairwarning.engine.service import Engine, Rules
from fairwarning.stores.postgres import PostgresStore
from tests.core.builders import E1, names
from tests.engine.harness import ME, TEST_WEB, ids

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Passes on what server and client say; while it is held, the server is not heard."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def hold(self) -> None:
        self._is_open.clear()

    def let_go(self) -> None:
        self._is_open.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self._server)
        directions = (self._pass_on(reader, to_server), self._pass_back(from_server, writer))
        for each in directions:
            task = asyncio.create_task(each)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._is_open.wait()
            writer.write(data)
        writer.close()


@asynccontextmanager
async def proxy_to(dsn: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy, and the address by which it is reached."""
    parts = dict(part.split("=", 1) for part in dsn.split())
    with tempfile.TemporaryDirectory() as folder:
        proxy = Proxy(Path(parts["host"], SOCKET))
        server = await asyncio.start_unix_server(proxy.connect, Path(folder, SOCKET))
        try:
            yield proxy, dsn.replace(parts["host"], folder)
        finally:
            proxy.let_go()
            server.close()


class CallsOfBoth:
    """The physical world of both nodes. Impacts last until the test ends."""

    def __init__(self) -> None:
        self.begun: list[tuple[NodeId, int]] = []
        self.news = asyncio.Event()

    async def find(self, order: Order) -> Found:
        return Found.UNKNOWN

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        self.begun.append((order.node, order.attempt))
        self.news.set()
        await alarm.wait(None)


class HeldEngine(Engine):
    """Its proxy is held from the moment when it decides about an approval."""

    proxy: Proxy

    def _step(self, command: Command) -> Step:
        step = super()._step(command)
        if not isinstance(command, Approve):
            return step

        def held(scope: Scope, moment: Moment) -> object:
            self.proxy.hold()
            return step(scope, moment)

        return held  # type: ignore[return-value]


async def test_a_reply_later_than_the_lease_begins_nothing(postgres_dsn: str) -> None:
    world = CallsOfBoth()
    rules = Rules(timing=Timing(lease_ms=1_500))

    async with proxy_to(postgres_dsn) as (proxy, slow_dsn):
        engines = []
        for kind, name, dsn in ((HeldEngine, "slow", slow_dsn), (Engine, "quick", postgres_dsn)):
            store = PostgresStore(dsn)
            await store.open()
            engine = kind(
                store=store,
                clock=SystemClock(),
                drivers={"simulated": world},
                node=NodeId(name),
                ids=ids(),
                rules=rules,
            )
            engines.append((engine, store))
        slow, quick = engines[0][0], engines[1][0]
        assert isinstance(slow, HeldEngine)
        slow.proxy = proxy
        scope = await _announced(slow, E1)
        await quick.start()
        approval = Approve(event_id=E1, by=ME)
        caller = asyncio.create_task(slow.submit(scope.id, approval, by=ME))
        await world.news.wait()
        assert world.begun[0][0] == "quick"
        proxy.let_go()
        await caller
        # One more turn of the scope by the slow node, so that it has seen all there is.
        await slow.submit(scope.id, Activate(), by=ENGINE)
        assert ("slow", 1) not in world.begun
        for engine, store in engines:
            await engine.stop()
            await store.close()


async def _announced(engine: Engine, id: EventId) -> Scope:
    scope, *_ = await engine.declare([TEST_WEB], by=ME)
    await engine.submit(scope.id, Activate(), by=ENGINE)
    command = Schedule(
        event_id=id, type=EventType.REBOOT, targets=names("web-0"), notice_ms=HOUR_MS
    )
    await engine.submit(scope.id, command, by=ME)
    return scope
