"""Rollouts with the real engine and stores on a virtual clock: restarts, nodes, outages."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from fairwarning.boot import make_store
from fairwarning.core.commands import Approve, Postpone, Schedule
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, later
from fairwarning.core.model import EventType, InstanceName, ScopeId, operator_actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import ScaleSet
from fairwarning.core.rollouts.model import RolloutPhase, RolloutSpec
from fairwarning.core.rollouts.windows import parse_window
from fairwarning.core.transitions import Noted, Scheduled, Started
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import event_id, names
from tests.core.rollouts.test_advance import MONDAY, fleets, specs
from tests.core.rollouts.test_plan import times
from tests.engine.harness import ME, FailingStore
from tests.engine.rolling import NIGHTS, REBOOT, Node, alone, web
from tests.support.flaky import Flaky


async def test_it_goes_through_the_fleet_as_the_plan_said() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"), web("b", 3, 3), web("c", 1, 1))
    spec = RolloutSpec(
        type=EventType.REDEPLOY, scopes_at_once=2, pause_ms=10 * MINUTE_MS, windows=NIGHTS
    )
    plan = await node.rollouts.preview(spec)
    assert not await node.announced()
    rollout = await node.rollouts.create(spec, by=ME, why="firmware")
    assert times(rollout.steps) == times(plan.steps)
    await clock.advance(DAY_MS)
    done = await node.rollouts.get(rollout.id)
    assert times(done.steps) == times(plan.steps)
    assert (done.phase, done.ended_ms) == (RolloutPhase.COMPLETED, plan.ends_ms)
    assert done.outcome == "update domains: 6 completed"
    assert await node.told() == [
        ("created", "operator:me", "firmware"),
        ("completed", "engine:engine", ""),
    ]
    await node.stop()


@settings(max_examples=15)
@given(specs, fleets)
async def test_the_runner_keeps_every_plan(spec: RolloutSpec, fleet: list[tuple[int, int]]) -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(*(web(f"s{n}", *size) for n, size in enumerate(fleet)))
    try:
        plan = await node.rollouts.preview(spec)
    except Refused:
        await node.stop()
        return
    assert plan.ends_ms is not None
    rollout = await node.rollouts.create(spec, by=ME)
    await clock.advance_to(plan.ends_ms)
    done = await node.rollouts.get(rollout.id)
    assert times(done.steps) == times(plan.steps)
    assert done.phase is RolloutPhase.COMPLETED
    await node.stop()


async def test_events_say_which_rollout_they_belong_to() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    spec = RolloutSpec(type=EventType.REBOOT, name="patch tuesday", description="New kernel.")
    rollout = await node.rollouts.create(spec, by=ME, why="CVE-2026-1")
    await clock.settle()
    entry, *_ = (
        e for e in await node.store.journal(limit=100) if isinstance(e.transition, Scheduled)
    )
    assert (str(entry.by), entry.why) == (
        f"rollout:{rollout.id}",
        "patch tuesday: CVE-2026-1",
    )
    assert isinstance(entry.transition, Scheduled)
    assert entry.transition.event.description == "New kernel."
    await node.stop()


async def test_a_restart_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    clock = VirtualClock(MONDAY)
    url = f"sqlite:///{tmp_path}/fw.db"
    store = make_store(url, clock)
    await store.open()
    node = await Node(store, clock).start()
    await node.declare(web("a", 3, 3), web("b", 3, 3))
    spec = RolloutSpec(
        type=EventType.REBOOT, duration_s=60, pause_ms=HOUR_MS, windows=NIGHTS, scopes_at_once=2
    )
    rollout = await node.rollouts.create(spec, by=ME)
    planned = times(rollout.steps)
    for hours in (13, 1, 1, 20):
        await clock.advance(hours * HOUR_MS + 7 * MINUTE_MS)
        await node.kill()
        await store.close()
        store = make_store(url, clock)
        await store.open()
        node = await Node(store, clock).start()
    await clock.advance(DAY_MS)
    done = await node.rollouts.get(rollout.id)
    assert times(done.steps) == planned
    assert done.phase is RolloutPhase.COMPLETED
    assert len(await node.announced()) == 6
    await node.stop()
    await store.close()


async def test_pause_resume_and_cancel_are_kept_and_noted() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a", 3, 3))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(MINUTE_MS)
    paused = await node.rollouts.pause(rollout.id, by=ME, why="lunch")
    assert paused.phase is RolloutPhase.PAUSED
    await node.rollouts.pause(rollout.id, by=ME)
    await clock.advance(5 * HOUR_MS)
    assert await node.phases(rollout) == ["completed", "waiting", "waiting"]
    await node.rollouts.resume(rollout.id, by=ME)
    await clock.advance(MINUTE_MS)
    assert await node.phases(rollout) == ["completed", "announced", "waiting"]
    await node.rollouts.cancel(rollout.id, by=operator_actor("boss"), why="enough")
    await clock.settle()
    assert await node.phases(rollout) == ["completed", "cancelled", "skipped"]
    done = await node.rollouts.get(rollout.id)
    assert (done.phase, done.outcome) == (
        RolloutPhase.CANCELLED,
        "cancelled by operator:boss: enough",
    )
    assert done.ended_ms == clock.now()
    assert await node.told() == [
        ("created", "operator:me", ""),
        ("paused", "operator:me", "lunch"),
        ("resumed", "operator:me", ""),
        ("cancelled", "operator:boss", "enough"),
    ]
    for decide in (node.rollouts.pause, node.rollouts.resume, node.rollouts.cancel):
        with pytest.raises(Refused) as refused:
            await decide(rollout.id, by=ME)
        assert refused.value.code is Code.ROLLOUT_FINISHED
    await node.stop()


async def test_a_driver_that_fails_stops_the_rollout() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"), web("b"))
    node.driver.fail(InstanceName("a-2"), times=99)
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(DAY_MS)
    done = await node.rollouts.get(rollout.id)
    assert done.phase is RolloutPhase.FAILED
    assert "instance 'a-2' was told to fail" in done.outcome
    assert await node.phases(rollout) == ["failed", "skipped", "skipped", "skipped"]
    assert ("failed", "engine:engine", "") in await node.told()
    await node.stop()


async def test_an_approval_moves_it_on_at_once() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    (scope_id,) = await node.declare(web("a"))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    (first,) = await node.announced()
    await node.engine.submit(scope_id, Approve(event_id=first, by=ME), by=ME)
    await clock.advance(MINUTE_MS)
    assert await node.phases(rollout) == ["completed", "announced"]
    await node.stop()


async def test_the_whole_fleet_is_what_it_is_at_the_beginning() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    scope_ids = await node.declare(web("b"), web("a"), ScaleSet(name="none", capacity=0))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await node.declare(web("c"))
    await clock.advance(DAY_MS)
    done = await node.rollouts.get(rollout.id)
    assert sorted({step.scope_id for step in done.steps}) == sorted(scope_ids[:2])
    assert len(await node.announced()) == 4
    await node.stop()


async def test_named_scopes_are_taken_in_the_order_of_their_names_given() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    b, a = await node.declare(web("b", 1, 1), web("a", 1, 1))
    spec = RolloutSpec(type=EventType.FREEZE, scope_ids=(b, a, b))
    assert [step.scope_id for step in (await node.rollouts.preview(spec)).steps] == [b, a]
    with pytest.raises(Refused) as refused:
        await node.rollouts.preview(RolloutSpec(type=EventType.FREEZE, scope_ids=(ScopeId("x"),)))
    assert refused.value.code is Code.UNKNOWN_SCOPE
    await node.stop()


async def test_rollouts_are_listed_newest_first_and_found_by_id() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    made = []
    for _ in range(5):
        made.append((await node.rollouts.create(REBOOT, by=ME)).id)
        await clock.advance(SECOND_MS)
    newest_first = made[::-1]
    first = await node.rollouts.page(limit=3)
    assert [each.id for each in first] == newest_first[:3]
    rest = await node.rollouts.page(first[-1].id, 3)
    assert [each.id for each in rest] == newest_first[3:]
    for wrong in ("20261116-093000-ffffff", "nonsense", "\ud800"):
        with pytest.raises(Refused) as refused:
            await node.rollouts.get(wrong)
        assert refused.value.code is Code.UNKNOWN_ROLLOUT
    await node.stop()


async def test_what_a_request_made_is_found_by_its_seed_for_a_day() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    first = await node.rollouts.create(REBOOT, by=ME, seed="key 1")
    await clock.advance(MINUTE_MS)
    other = await node.rollouts.create(REBOOT, by=ME, seed="key 2")
    assert first.id != other.id
    await clock.advance(DAY_MS - 2 * MINUTE_MS)
    assert (await node.rollouts.made_for("key 1")).id == first.id
    assert (await node.rollouts.made_for("key 2")).id == other.id
    with pytest.raises(Refused) as refused:
        await node.rollouts.made_for("key 3")
    assert refused.value.code is Code.UNKNOWN_ROLLOUT
    await clock.advance(2 * MINUTE_MS + SECOND_MS)
    with pytest.raises(Refused):
        await node.rollouts.made_for("key 1")
    await node.stop()


async def test_what_is_asked_through_another_store_is_written_there() -> None:
    """As the control plane does it, behind its fence."""
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    flaky = Flaky(node.store)
    rollouts = node.rollouts.through(flaky.store)
    with flaky.failing():
        rollout = await rollouts.create(REBOOT, by=ME)
        await rollouts.pause(rollout.id, by=ME)
    assert flaky.calls.count("keep rollout") == 2
    await node.stop()


async def test_a_scope_that_is_named_twice_is_taken_once() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    (id,) = await node.declare(web("a"))
    spec = replace(REBOOT, scope_ids=(id, id))
    assert len((await node.rollouts.preview(spec)).steps) == 2
    await node.stop()


async def test_a_postponed_event_is_waited_for_in_its_new_place() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    (scope_id,) = await node.declare(web("a", 2, 2))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    (first,) = await node.announced()
    new, at = event_id(900), later(clock.now(), 2 * HOUR_MS)
    command = Postpone(event_id=first, new_event_id=new, not_before_ms=at)
    await node.engine.submit(scope_id, command, by=ME)
    await clock.advance(HOUR_MS)
    assert await node.announced() == [first, new]
    await clock.advance(3 * HOUR_MS)
    assert await node.phases(rollout) == ["completed", "completed"]
    await node.stop()


async def test_two_rollouts_of_one_type_do_not_disturb_the_same_instances_at_once() -> None:
    """The second waits until the first one's event has ended, domain by domain."""
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    rollouts = [await node.rollouts.create(REBOOT, by=ME) for _ in range(2)]
    await clock.advance(3 * HOUR_MS)
    for rollout in rollouts:
        assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.COMPLETED
    assert len(await node.announced()) == 4
    await node.stop()


@pytest.mark.parametrize("fault", ["is_down", "loses_answers"])
async def test_an_outage_while_announcing_neither_loses_nor_doubles_it(fault: str) -> None:
    """The note of the announcement is kept; the announcement itself fails, or its answer does."""
    clock = VirtualClock(MONDAY)
    store = FailingStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"))
    setattr(store, fault, True)
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    setattr(store, fault, False)
    await clock.advance(HOUR_MS)
    assert await node.phases(rollout) == ["completed", "completed"]
    assert len(await node.announced()) == 2
    await node.stop()


async def test_what_ended_unseen_and_left_its_scope_is_found_in_the_history() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    (scope_id,) = await node.declare(web("a"))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    (first,) = await node.announced()
    await node.rollouts.stop()
    await clock.advance(16 * MINUTE_MS)
    for number in range(5):
        freeze = Schedule(
            event_id=event_id(100 + number), type=EventType.FREEZE, targets=names("a-0")
        )
        await node.engine.submit(scope_id, freeze, by=ME)
        await clock.advance(16 * MINUTE_MS)
    assert first not in (await node.store.read(scope_id)).events
    await node.rollouts.start()
    assert await node.phases(rollout) == ["completed", "announced"]
    await node.stop()


async def test_what_became_overdue_while_no_node_was_up_does_not_start_outside_its_window() -> None:
    clock = VirtualClock(MONDAY)
    store = MemoryStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"))
    window = parse_window("daily 10:00-11:00")
    spec = RolloutSpec(type=EventType.REBOOT, duration_s=60, windows=(window,))
    rollout = await node.rollouts.create(spec, by=ME)
    await clock.advance(31 * MINUTE_MS)
    assert await node.phases(rollout) == ["announced", "waiting"]
    await node.kill()
    clock.step(5 * HOUR_MS)

    node = Node(store, clock)
    await node.rollouts.start()
    assert await node.phases(rollout) == ["waiting", "waiting"]
    await node.engine.start()
    await clock.advance(DAY_MS)
    starts = [
        (e.at_ms - MONDAY) // MINUTE_MS
        for e in await store.journal(limit=1_000)
        if isinstance(e.transition, Started)
    ]
    tomorrow_at_ten = (DAY_MS + 30 * MINUTE_MS) // MINUTE_MS
    assert starts == [tomorrow_at_ten + 15, tomorrow_at_ten + 31]
    await node.stop()


async def test_it_runs_by_the_clock_on_the_wall_too(tmp_path: Path) -> None:
    clock = SystemClock()
    store = make_store(f"sqlite:///{tmp_path}/fw.db", clock)
    await store.open()
    node = await Node(store, clock).start()
    await node.declare(web("a", 2, 1, test=True))
    spec = RolloutSpec(type=EventType.FREEZE, notice_ms=0, duration_s=0)
    rollout = await node.rollouts.create(spec, by=ME)
    async for entry in node.engine.changes():
        if isinstance(entry.transition, Noted) and entry.transition.action == "completed":
            break
    assert await node.phases(rollout) == ["completed"]
    await node.stop()
    await store.close()
