"""Documents in memory follow the store, whatever happens to signals, clocks and callers."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairwarning.boot import make_store
from fairwarning.core.commands import Activate, AddInstances, Approve, Cancel, Schedule
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.model import EventType, Instance, InstanceName, Phase, ScopeId
from fairwarning.core.resources import VirtualMachine
from fairwarning.engine import change_feed
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Due, Receipt, Signal
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import E1, E2, names
from tests.engine.harness import ME, Rig
from tests.support.patience import HANG_S

REBOOT = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0"), duration_s=30)


class Shared(MemoryStore):
    """As other nodes see a shared store: signals bring no scope, or do not come at all."""

    loses_signals = False

    @property
    def is_shared(self) -> bool:
        return True

    def listen(self, listener) -> None:  # type: ignore[no-untyped-def]
        def forward(signal: Signal) -> None:
            if not self.loses_signals:
                listener(Signal(scope_id=signal.scope_id, next_deadline_ms=signal.next_deadline_ms))

        super().listen(forward)


async def until_shown(views: Views, incarnation: int) -> None:
    async with asyncio.timeout(HANG_S):
        while [m.view.incarnation for m in views.by_name("web-0")] != [incarnation]:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_another_nodes_change_is_read_when_its_signal_comes() -> None:
    clock = VirtualClock()
    rig = Rig(Shared(clock), clock)
    engine = await rig.node()
    views = await engine.show()
    scope = await rig.declare(engine)
    await until_shown(views, 1)
    for number in range(2, 12, 2):
        command = Schedule(event_id=engine.new_id(), type=EventType.FREEZE, targets=names("web-0"))
        await engine.submit(scope.id, command, by=ME)
        await engine.submit(scope.id, Cancel(event_id=command.event_id), by=ME)
        await until_shown(views, number + 1)
    await engine.stop()


async def test_a_lost_signal_is_made_good_by_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "RECHECK_S", 0.01)
    clock = VirtualClock()
    store = Shared(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    views = await engine.show()
    store.loses_signals = True
    scope = await rig.declare(engine)
    await until_shown(views, 1)
    await engine.submit(scope.id, REBOOT, by=ME)
    await until_shown(views, 2)
    await engine.stop()


async def test_an_address_that_went_round_does_not_break_its_old_scope() -> None:
    clock = VirtualClock()
    rig = Rig(MemoryStore(clock), clock)
    engine = await rig.node()
    views = await engine.show()
    a, b = await engine.declare(
        [VirtualMachine(name="a", addresses=("10.0.0.1",)), VirtualMachine(name="b")], by=ME
    )
    old = await rig.store.read(a.id)
    moved = Instance(name=InstanceName("b"), addresses=("10.0.0.1",))
    for scope_id, instances in ((a.id, {}), (b.id, {moved.name: moved}), (b.id, {})):
        scope = await rig.store.read(scope_id)
        revision = views._views[scope_id].revision + 1
        roster = replace(scope.roster, instances=instances)
        views.put(replace(scope, roster=roster, revision=revision))
    assert views.by_address("10.0.0.1") is None
    views.put(replace(old, revision=99))
    found = views.by_address("10.0.0.1")
    assert found is not None
    assert found.name == "a"
    await engine.stop()


class Breaking(MemoryStore):
    """Whose turn of one scope breaks, as a bug would break it."""

    broken: ScopeId | None = None

    async def transact(self, scope_id, step, **more) -> Receipt:  # type: ignore[no-untyped-def]
        if scope_id == self.broken:
            raise ValueError("a bug")
        return await super().transact(scope_id, step, **more)


async def test_one_broken_scope_does_not_stop_the_timers_of_others() -> None:
    clock = VirtualClock()
    store = Breaking(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    other = await rig.declare(engine, VirtualMachine(name="db"))
    await engine.submit(scope.id, REBOOT, by=ME)
    freeze = Schedule(event_id=E2, type=EventType.FREEZE, targets=names("db"))
    await engine.submit(other.id, freeze, by=ME)
    store.broken = scope.id
    await clock.advance(16 * MINUTE_MS)
    assert (await store.read(other.id)).events[E2].phase is Phase.COMPLETED
    store.broken = None
    await clock.advance(MINUTE_MS)
    assert (await store.read(scope.id)).events[E1].phase is Phase.COMPLETED
    await engine.stop()


async def test_work_of_a_caller_who_went_away_is_carried_out(tmp_path: Path) -> None:
    clock = VirtualClock()
    store = make_store(f"sqlite:///{tmp_path}/fw.db", clock)
    await store.open()
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    started = asyncio.Event()
    store.listen(lambda _: started.set())
    caller = asyncio.create_task(engine.submit(scope.id, Approve(event_id=E1, by=ME), by=ME))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    async with asyncio.timeout(HANG_S):
        await started.wait()
    await clock.advance(31_000)
    history = await rig.history()
    assert history.count("HandedOver") == 1
    assert "Completed" in history
    await engine.stop()
    await store.close()


class Elsewhere(MemoryStore):
    """A store whose clock is not the node's."""

    ahead_ms = 2 * DAY_MS

    async def due(self, limit: int) -> Due:
        due = await super().due(limit)
        return Due(
            now_ms=Instant(due.now_ms + self.ahead_ms),
            scope_ids=due.scope_ids,
            next_deadline_ms=due.next_deadline_ms,
        )


async def test_who_asked_is_noted_by_the_stores_clock() -> None:
    clock = VirtualClock()
    store = Elsewhere(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    views = await engine.show()
    scope = await rig.declare(engine)
    (member,) = views.by_name("web-0")
    member.view.is_asked = True
    await clock.advance(HOUR_MS)
    seen = (await store.read(scope.id)).last_seen_ms
    assert seen is not None
    assert seen > clock.now() + DAY_MS
    await engine.stop()


async def test_a_new_instance_is_of_the_newest_model_and_has_a_place() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    new = Instance(name=InstanceName("web-9"), update_domain=1)
    receipt = await engine.submit(scope.id, AddInstances(instances=(new,)), by=ME)
    assert receipt.scope.roster.instances[new.name].model == receipt.scope.roster.model
    await engine.submit(scope.id, Activate(), by=ME)
    await engine.stop()
