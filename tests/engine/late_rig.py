"""An engine whose store answers late, and a driver that notes every call."""

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Self

from fairwarning.core.commands import Approve, Schedule
from fairwarning.core.instants import HOUR_MS, SECOND_MS, Instant
from fairwarning.core.model import EventId, EventType, NodeId, Phase, Scope, ScopeId
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.impact_hooks import RunHook, no_hooks
from fairwarning.engine.protocols import (
    Alarm,
    DriverFailed,
    Found,
    Lease,
    Order,
    Receipt,
    StoreDown,
)
from fairwarning.engine.service import Engine, Rules
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import names
from tests.engine.harness import ME, TEST_WEB, Rig

LEASE_MS = 30 * SECOND_MS
_STATE = {"_scopes", "_deadlines", "_pending", "_events", "_addresses", "_entries", "_records"}


async def _nothing() -> None:
    return


class ElapsingClock(VirtualClock):
    def elapse(self, by_ms: int) -> None:
        """Time passes while everybody is at work, so nobody is woken."""
        self._now = Instant(self._now + by_ms)


class RecordingDriver:
    """Notes every call. An impact lasts until the test ends it, or no time at all."""

    def __init__(self) -> None:
        self.begun: list[tuple[EventId, int]] = []
        self.orders: list[Order] = []
        self.asked: list[tuple[EventId, int]] = []
        self.found = Found.UNKNOWN
        self.on_find: Callable[[], Awaitable[None]] = _nothing
        self.lasts = False
        self.failures = 0
        self.reason = "the test wants it"
        self.breaks = False
        self.on_cancel: Callable[[], Awaitable[None]] = _nothing
        self.running = 0
        self.most = 0
        """How many were running at once."""
        self._alarms: list[Alarm] = []

    async def find(self, order: Order) -> Found:
        self.asked.append((order.key, order.attempt))
        await self.on_find()
        return self.found

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        self.begun.append((order.key, order.attempt))
        self.orders.append(order)
        if self.breaks:
            raise KeyError
        self._alarms.append(alarm)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            while self.lasts:
                await alarm.wait(None)
        except asyncio.CancelledError:
            await self.on_cancel()
            raise
        finally:
            self.running -= 1
        if self.failures:
            self.failures -= 1
            raise DriverFailed(self.reason)

    def end_all(self) -> None:
        self.lasts = False
        for alarm in self._alarms:
            alarm.ring()


class LateStore(MemoryStore):
    """Commits at once; while `is_late`, the answers wait until the test lets them go."""

    is_late = False
    is_down = False
    gate: asyncio.Event | None = None
    """What begins now waits for this before it is committed."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.late: list[tuple[Receipt, asyncio.Future[None]]] = []

    async def transact(self, *args: object, **named: object) -> Receipt:
        if self.is_down:
            raise StoreDown("switched off by the test")
        if self.gate is not None:
            await self.gate.wait()
        receipt = await super().transact(*args, **named)  # type: ignore[arg-type]
        if self.is_late:
            gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.late.append((receipt, gate))
            await gate
        return receipt

    def lose(self, number: int) -> None:
        """What was committed is there, and who asked for it does not hear of it."""
        self.late[number][1].set_exception(StoreDown("the answer was lost"))

    def snapshot(self) -> dict[str, object]:
        return {name: copy(value) for name, value in vars(self).items() if name in _STATE}

    def put_back(self, snapshot: dict[str, object]) -> None:
        vars(self).update(snapshot)

    async def let_go(self, number: int) -> None:
        self.late[number][1].set_result(None)
        await run_all()


async def run_all() -> None:
    """Everything that is ready runs; the virtual clock stands still."""
    for _ in range(50):
        await asyncio.sleep(0)


class LateRig(Rig):
    def __init__(self) -> None:
        self.clock: ElapsingClock
        clock = ElapsingClock()
        self.late_store = LateStore(clock)
        super().__init__(self.late_store, clock)
        self.calls = RecordingDriver()
        self.run_hook: RunHook = no_hooks
        self.resource = TEST_WEB

    async def node(self, name: str = "n1", rules: Rules | None = None) -> Engine:
        engine = Engine(
            store=self.store,
            clock=self.clock,
            drivers={"simulated": self.calls},
            run_hook=self.run_hook,
            node=NodeId(name),
            ids=self._ids,
            rules=rules,
        )
        await engine.start()
        return engine

    @classmethod
    async def started(
        cls,
        *ids: EventId,
        lasts: bool = False,
        failures: int = 0,
        rules: Rules | None = None,
    ) -> tuple[Self, Engine, Scope]:
        """A rig with one node, and a scope in which these events are scheduled."""
        rig = cls()
        rig.calls.lasts, rig.calls.failures = lasts, failures
        engine = await rig.node(rules=rules)
        return rig, engine, await rig.scheduled(engine, *ids)

    async def scheduled(self, engine: Engine, *ids: EventId) -> Scope:
        scope = await self.declare(engine, self.resource)
        for number, id in enumerate(ids):
            command = Schedule(
                event_id=id,
                type=EventType.REBOOT,
                targets=names(f"web-{2 * number}"),
                notice_ms=HOUR_MS,
            )
            await engine.submit(scope.id, command, by=ME)
        return scope

    async def approve_late(
        self, engine: Engine, scope: Scope, *ids: EventId
    ) -> list[asyncio.Task[Receipt]]:
        """The events are approved in the store, and nobody has heard of it yet."""
        self.late_store.is_late = True
        callers = [approve(engine, scope, id) for id in ids]
        await run_all()
        self.late_store.is_late = False
        return callers

    async def outage(self, lasts_ms: int) -> None:
        self.late_store.is_down = True
        await self.clock.advance(lasts_ms)
        self.late_store.is_down = False

    async def holder(self, scope_id: ScopeId, id: EventId) -> tuple[NodeId | None, int]:
        """The node that has the work, and its attempt."""
        work = (await self.store.read(scope_id)).events[id].work
        assert work is not None
        return work.node, work.attempt

    async def lease_left_ms(self, scope_id: ScopeId, id: EventId) -> int:
        work = (await self.store.read(scope_id)).events[id].work
        assert work is not None
        assert work.lease_until_ms is not None
        return work.lease_until_ms - self.clock.now()

    async def assert_given_back(self, scope_id: ScopeId, id: EventId) -> None:
        node, _ = await self.holder(scope_id, id)
        assert node is None

    async def phase(self, scope_id: ScopeId, id: EventId) -> Phase:
        return (await self.store.read(scope_id)).events[id].phase


def approve(engine: Engine, scope: Scope, id: EventId) -> asyncio.Task[Receipt]:
    return asyncio.create_task(engine.submit(scope.id, Approve(event_id=id, by=ME), by=ME))
