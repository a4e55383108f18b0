"""Timers, drivers, crashes and outages, with the real engine on a virtual clock."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairwarning.core.commands import Approve, Cancel, Command, Operate, Postpone, Schedule
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, later
from fairwarning.core.model import (
    EventType,
    InstanceName,
    OperationKind,
    Phase,
    Scope,
    ScopeId,
    instance_actor,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import Place, VirtualMachine, expand
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import OtherPast
from fairwarning.engine.protocols import Fence, FenceBroken, Receipt, ScopeBusy, StoreDown
from fairwarning.engine.service import Engine, Rules
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import E1, E2, names
from tests.engine.harness import ME, TEST_WEB, FailingStore, Rig, kill
from tests.support.patience import HANG_S

REBOOT = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0"), duration_s=30)


async def phase(rig: Rig, scope_id: ScopeId) -> Phase:
    return (await rig.store.read(scope_id)).events[E1].phase


async def test_an_event_starts_at_its_time_to_the_millisecond() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    receipt = await engine.submit(scope.id, REBOOT, by=ME)
    not_before = receipt.scope.events[E1].not_before_ms
    await rig.clock.advance_to(type(not_before)(not_before - 1))
    assert await phase(rig, scope.id) is Phase.SCHEDULED
    await rig.clock.advance(1)
    assert await phase(rig, scope.id) is Phase.STARTED
    await rig.clock.advance(30 * SECOND_MS - 1)
    assert await phase(rig, scope.id) is Phase.STARTED
    await rig.clock.advance(1)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    await engine.stop()


async def test_the_history_says_who_when_and_why() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME, why="firmware")
    web_1 = instance_actor(InstanceName("web-1"))
    await engine.approve(E1, by=web_1)
    await rig.clock.advance(MINUTE_MS)
    told = [
        (type(e.transition).__name__, str(e.by), e.why)
        for e in await rig.entries()
        if getattr(e.transition, "event_id", None) == E1
    ]
    assert told == [
        ("Scheduled", "operator:me", "firmware"),
        ("Approved", "instance:web-1", ""),
        ("Started", "instance:web-1", ""),
        ("HandedOver", "instance:web-1", ""),
        ("Completed", "engine:engine", ""),
    ]
    await engine.stop()


async def test_a_driver_that_fails_is_tried_again() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    rig.driver.fail(InstanceName("web-0"), times=2)
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(HOUR_MS)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    assert (await rig.history()).count("AttemptFailed") == 2
    await engine.stop()


async def test_a_driver_that_always_fails_ends_the_event_as_failed() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    rig.driver.fail(InstanceName("web-0"), times=99)
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(HOUR_MS)
    event = (await rig.store.read(scope.id)).events[E1]
    assert event.phase is Phase.FAILED
    assert event.outcome == "gave up after attempt 5: instance 'web-0' was told to fail"
    await engine.stop()


async def test_a_driver_that_hangs_is_cut_off_and_never_holds_the_event_for_ever() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    rig.driver.hang(InstanceName("web-0"))
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(4 * HOUR_MS)
    event = (await rig.store.read(scope.id)).events[E1]
    assert event.phase is Phase.FAILED
    assert "no answer within 1830 s" in event.outcome
    await engine.stop()


async def test_an_unknown_driver_is_named_in_the_history() -> None:
    rig = Rig()
    engine = await rig.node()
    vm = VirtualMachine(name="web-0", place=Place(driver="libvrit"))
    scope = await rig.declare(engine, vm)
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(HOUR_MS)
    event = (await rig.store.read(scope.id)).events[E1]
    assert event.phase is Phase.FAILED
    assert "no driver is called 'libvrit'" in event.outcome
    await engine.stop()


async def test_another_node_takes_over_from_one_that_died() -> None:
    rig = Rig()
    first = await rig.node("first")
    scope = await rig.declare(first)
    await first.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(15 * MINUTE_MS + SECOND_MS)
    assert await phase(rig, scope.id) is Phase.STARTED
    kill(first)
    second = await rig.node("second")
    await rig.clock.advance(MINUTE_MS)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    assert "AttemptLost" in await rig.history()
    await second.stop()


async def test_a_node_that_stops_gives_its_work_back_at_once() -> None:
    rig = Rig()
    first = await rig.node("first")
    scope = await rig.declare(first)
    await first.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(15 * MINUTE_MS)
    await first.stop()
    work = (await rig.store.read(scope.id)).events[E1].work
    assert work is not None
    assert work.node is None
    second = await rig.node("second")
    await rig.clock.settle()
    work = (await rig.store.read(scope.id)).events[E1].work
    assert work is not None
    assert work.node == "second"
    await second.stop()


async def test_two_nodes_carry_out_an_impact_once() -> None:
    rig = Rig()
    first, second = await rig.node("first"), await rig.node("second")
    scope = await rig.declare(first)
    await first.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(HOUR_MS)
    history = await rig.history()
    assert history.count("HandedOver") == 1
    assert history.count("Completed") == 1
    await first.stop()
    await second.stop()


async def test_the_feed_has_every_entry_once_and_goes_on_from_any_position() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(HOUR_MS)
    expected = await rig.entries()
    feed = engine.changes()
    read = [await anext(feed) for _ in expected]
    assert read == expected
    rest = engine.changes(after=expected[2].position)
    assert [await anext(rest) for _ in expected[3:]] == expected[3:]
    await engine.submit(
        scope.id, Schedule(event_id=E2, type=EventType.FREEZE, targets=names("web-1")), by=ME
    )
    assert type((await anext(feed)).transition).__name__ == "Scheduled"
    await engine.stop()


async def test_an_outage_is_told_to_the_caller_and_costs_only_time() -> None:
    clock = VirtualClock()
    store = FailingStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    store.is_down = True
    with pytest.raises(StoreDown, match="switched off"):
        await engine.submit(scope.id, Approve(event_id=E1, by=ME), by=ME)
    await clock.advance(20 * MINUTE_MS)
    store.is_down = False
    assert await phase(rig, scope.id) is Phase.SCHEDULED
    await clock.advance(MINUTE_MS)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    await engine.stop()


async def test_work_whose_handover_was_written_but_not_told_is_found_again() -> None:
    clock = VirtualClock()
    store = FailingStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    store.loses_answers = True
    with pytest.raises(StoreDown):
        await engine.submit(scope.id, Approve(event_id=E1, by=ME), by=ME)
    store.loses_answers = False
    assert await phase(rig, scope.id) is Phase.STARTED
    await clock.advance(2 * MINUTE_MS)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    await engine.stop()


async def test_the_limit_on_pending_operations_counts_the_whole_subscription() -> None:
    rig = Rig()
    engine = await rig.node(rules=Rules(operations_pending_max=2))
    scope = await rig.declare(engine)
    other = await rig.declare(engine, VirtualMachine(name="db"))
    for target, name in ((scope, "web-0"), (other, "db")):
        await engine.submit(target.id, _restart(engine, name), by=ME)
    with pytest.raises(Refused) as refused:
        await engine.submit(scope.id, _restart(engine, "web-1"), by=ME)
    assert refused.value.code is Code.TOO_MANY_OPERATIONS
    await rig.clock.advance(HOUR_MS)
    await engine.submit(scope.id, _restart(engine, "web-1"), by=ME)
    await engine.stop()


def _restart(engine: Engine, name: str) -> Operate:
    return Operate(
        event_id=engine.new_id(), kind=OperationKind.RESTART, instance=InstanceName(name)
    )


async def test_many_timers_at_one_instant_all_fire() -> None:
    rig = Rig()
    engine = await rig.node()
    machines = [VirtualMachine(name=f"vm{n}") for n in range(600)]
    scopes = await engine.declare(machines, by=ME)
    for scope, machine in zip(scopes, machines, strict=True):
        command = Schedule(
            event_id=engine.new_id(), type=EventType.FREEZE, targets=names(machine.name)
        )
        await engine.submit(scope.id, command, by=ME)
    await rig.clock.advance(HOUR_MS)
    assert (await rig.history()).count("Completed") == 600
    await engine.stop()


async def test_a_test_fleet_runs_an_event_with_no_notice() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine, TEST_WEB)
    command = Schedule(event_id=E1, type=EventType.TERMINATE, targets=names("web-0"), notice_ms=0)
    await engine.submit(scope.id, command, by=ME)
    await rig.clock.advance(SECOND_MS + 5 * SECOND_MS)
    assert not (await rig.store.read(scope.id)).roster.has_live(InstanceName("web-0"))
    await engine.stop()


async def test_a_node_that_starts_again_carries_out_impacts_again() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.stop()
    await engine.start()
    await engine.submit(scope.id, REBOOT, by=ME)
    await engine.approve(E1, by=ME)
    await rig.clock.advance(MINUTE_MS)
    assert await phase(rig, scope.id) is Phase.COMPLETED
    await engine.stop()


class GatedStore(MemoryStore):
    """Whose transactions wait before they begin, as for a row that another has locked."""

    gate: asyncio.Event | None = None
    busy: ScopeId | None = None
    other_past = False

    async def transact(self, scope_id, step, **named) -> Receipt:  # type: ignore[no-untyped-def]
        if scope_id == self.busy:
            if named["skip_busy"]:
                raise ScopeBusy
            await asyncio.Event().wait()
        if self.gate is not None:
            await self.gate.wait()
        if self.other_past:
            self.other_past = False
            raise OtherPast("the test wants it")
        return await super().transact(scope_id, step, **named)


async def test_a_node_that_stops_takes_nothing_even_if_it_was_asked_before() -> None:
    clock = VirtualClock()
    store = GatedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    store.gate = asyncio.Event()
    asked = asyncio.create_task(engine.approve(E1, by=ME))
    for _ in range(5):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(engine.stop())
    for _ in range(5):
        await asyncio.sleep(0)
    store.gate.set()
    await asyncio.gather(asked, stopping)
    assert await phase(rig, scope.id) is Phase.STARTED
    assert "HandedOver" not in await rig.history()


async def test_a_scope_that_another_node_holds_does_not_hold_up_the_timers_of_others() -> None:
    clock = VirtualClock()
    store = GatedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    held = await rig.declare(engine, VirtualMachine(name="db"))
    scope = await rig.declare(engine)
    first = Schedule(event_id=E2, type=EventType.REBOOT, targets=names("db"))
    await engine.submit(held.id, first, by=ME)
    await clock.advance(SECOND_MS)
    await engine.submit(scope.id, REBOOT, by=ME)
    await clock.advance(15 * MINUTE_MS - 2 * SECOND_MS)
    store.busy = held.id
    await clock.advance(2 * SECOND_MS)
    assert await phase(rig, scope.id) is Phase.STARTED
    store.busy = None
    await engine.stop()


async def test_a_condition_counts_also_after_the_store_had_another_past(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = VirtualClock()
    store = GatedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    monkeypatch.setattr(engine, "_follow", _follow_at_once)

    class Overtaken(Exception):
        pass

    def refuse(_: Scope) -> None:
        raise Overtaken

    store.other_past = True
    with pytest.raises(Overtaken):
        await engine.submit(scope.id, REBOOT, by=ME, precondition=refuse)
    assert not (await store.read(scope.id)).events
    await engine.stop()


@pytest.mark.parametrize("is_other_past", [False, True])
async def test_nothing_is_done_behind_a_fence_that_is_broken(
    is_other_past: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    store = GatedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    monkeypatch.setattr(engine, "_follow", _follow_at_once)
    fences = [Fence(record=await store.keep("lock", "x", "mine", by=ME))]
    await store.keep("lock", "x", "another's", by=ME)
    new = expand(VirtualMachine(name="db"))
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.create(new, by=ME, fences=fences),
        lambda: engine.approve(E1, by=ME, fences=fences),
        lambda: engine.submit(scope.id, Cancel(event_id=E1), by=ME, fences=fences),
    ]
    for ask in asked:
        store.other_past = is_other_past and ask is not asked[0]
        with pytest.raises(FenceBroken):
            await ask()
    assert await phase(rig, scope.id) is Phase.SCHEDULED
    assert not (await store.read(scope.id)).events[E1].approvals
    assert await store.scope_ids(limit=10) == [scope.id]
    await engine.stop()


async def _follow_at_once(_: ScopeId) -> None:
    return


async def test_whoever_decides_on_an_event_that_its_scope_has_forgotten_hears_that_it_is_over() -> (
    None
):
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    other = await rig.declare(engine, VirtualMachine(name="db"))
    await engine.submit(scope.id, REBOOT, by=ME)
    await rig.clock.advance(3 * DAY_MS)
    await engine.submit(
        scope.id, Schedule(event_id=E2, type=EventType.FREEZE, targets=names("web-0")), by=ME
    )
    assert E1 not in (await rig.store.read(scope.id)).events
    at = later(rig.clock.now(), HOUR_MS)
    commands: list[Command] = [
        Approve(event_id=E1, by=ME),
        Cancel(event_id=E1),
        Postpone(event_id=E1, new_event_id=engine.new_id(), not_before_ms=at),
    ]
    for command in commands:
        for scope_id, code in ((scope.id, Code.EVENT_FINISHED), (other.id, Code.UNKNOWN_EVENT)):
            with pytest.raises(Refused) as refused:
                await engine.submit(scope_id, command, by=ME)
            assert refused.value.code is code
    await engine.stop()


async def test_a_reason_that_cannot_be_stored_is_refused() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.declare([VirtualMachine(name="db")], by=ME, why="\ud800"),
        lambda: engine.submit(scope.id, REBOOT, by=ME, why="\ud800"),
    ]
    for ask in asked:
        with pytest.raises(Refused) as refused:
            await ask()
        assert refused.value.code is Code.TEXT_INVALID
    assert await rig.store.scope_ids(limit=10) == [scope.id]
    await engine.stop()


async def test_who_follows_and_who_observes_hears_of_a_commit_with_its_reason() -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine)
    observed: list[tuple[str, str]] = []
    engine.observe(lambda _receipt, by, why, _took_s: observed.append((by.name, why)))
    changes = engine.changes(await rig.store.end())
    coming = asyncio.ensure_future(anext(changes))
    for _ in range(20):
        await asyncio.sleep(0)
    await engine.submit(scope.id, REBOOT, by=ME, why="firmware")
    async with asyncio.timeout(HANG_S):
        entry = await coming
    assert entry.why == "firmware"
    assert observed == [("me", "firmware")]
    await changes.aclose()
    await engine.stop()
