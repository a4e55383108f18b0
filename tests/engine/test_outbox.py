"""Impacts are begun once, however late the news comes, and given back by a node that stops."""

import asyncio

import pytest

from fairwarning.core.commands import Cancel, Operate, Release, Schedule
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import EventType, InstanceName, NodeId, OperationKind, Phase
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.core.transitions import AttemptFailed
from fairwarning.engine.protocols import Found
from tests.core.builders import E1, E2, names
from tests.engine.harness import ME
from tests.engine.late_rig import LEASE_MS, LateRig, approve, run_all


async def test_an_answer_that_comes_after_the_end_does_not_begin_the_impact_again() -> None:
    rig, engine, scope = await LateRig.started(E1, E2)
    rig.late_store.is_late = True
    callers = [approve(engine, scope, E1)]
    await run_all()
    # Somebody else's commit on the same scope also says that E1 is ours, attempt 1.
    callers.append(asyncio.create_task(engine.submit(scope.id, Cancel(event_id=E2), by=ME)))
    await run_all()
    rig.late_store.is_late = False
    await rig.late_store.let_go(0)
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await rig.late_store.let_go(1)
    await asyncio.gather(*callers)
    assert rig.calls.begun == [(E1, 1)]
    await engine.stop()


async def test_answers_in_the_wrong_order_begin_an_impact_once() -> None:
    rig, engine, scope = await LateRig.started(E1, E2)
    callers = await rig.approve_late(engine, scope, E1, E2)
    await rig.late_store.let_go(1)
    await rig.late_store.let_go(0)
    await asyncio.gather(*callers)
    assert sorted(rig.calls.begun) == [(E1, 1), (E2, 1)]
    await engine.stop()


async def test_an_answer_that_is_older_than_what_was_seen_begins_nothing() -> None:
    """The newer one says that the work was given back; another node may have it by now."""
    rig, engine, scope = await LateRig.started(E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    engine._takes_work = False
    release = Release(event_id=E1, attempt=1, node=NodeId("n1"))
    await engine.submit(scope.id, release, by=ME)
    await rig.late_store.let_go(0)
    await caller
    assert rig.calls.begun == []
    await engine.stop()


async def test_a_node_that_stops_gives_back_what_a_late_commit_hands_to_it() -> None:
    rig, engine, scope = await LateRig.started(E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    stopping = asyncio.create_task(engine.stop())
    await run_all()
    assert not stopping.done()
    await rig.late_store.let_go(0)
    await stopping
    await caller
    assert rig.calls.begun == []
    await rig.assert_given_back(scope.id, E1)


async def test_a_node_that_stops_gives_back_what_a_caller_left_behind() -> None:
    rig, engine, scope = await LateRig.started(E1)
    rig.late_store.is_late = True
    caller = approve(engine, scope, E1)
    await run_all()
    caller.cancel()
    rig.late_store.is_late = False
    stopping = asyncio.create_task(engine.stop())
    await run_all()
    await rig.late_store.let_go(0)
    await stopping
    assert rig.calls.begun == []
    await rig.assert_given_back(scope.id, E1)


async def test_a_caller_who_goes_away_leaves_an_impact_that_is_carried_out() -> None:
    rig, engine, scope = await LateRig.started(E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    caller.cancel()
    await rig.late_store.let_go(0)
    assert caller.cancelled()
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_after_the_store_stepped_back_nothing_of_the_old_name_is_begun_again() -> None:
    rig, engine, scope = await LateRig.started(E1)
    receipt = await approve(engine, scope, E1)
    await run_all()
    engine._on_step_back()
    engine._outbox.take(receipt, rig.clock.steady_ms())
    await run_all()
    assert rig.calls.begun == [(E1, 1)]
    await engine.stop()


async def test_an_answer_from_before_the_step_back_hides_nothing_that_comes_after_it() -> None:
    """Its revision is of the lost past, and higher than those that come now."""
    rig, engine, scope = await LateRig.started(E1, E2)
    before = rig.late_store.snapshot()
    await engine.submit(scope.id, Cancel(event_id=E2), by=ME)
    (caller,) = await rig.approve_late(engine, scope, E1)
    rig.late_store.put_back(before)
    engine._on_step_back()
    await rig.late_store.let_go(0)
    await caller
    assert rig.calls.begun == []
    await approve(engine, scope, E2)
    await run_all()
    assert rig.calls.begun == [(E2, 1)]
    await engine.stop()


async def test_a_forgotten_event_leaves_nothing_behind() -> None:
    rig, engine, scope = await LateRig.started(E1, E2)
    for id in (E1, E2):
        await approve(engine, scope, id)
        await run_all()
    assert len(rig.calls.begun) == 2
    assert engine._outbox._attempts == {}
    await engine.stop()


async def test_an_outcome_waits_for_a_store_that_is_away() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_down = True
    rig.calls.end_all()
    await rig.clock.advance(3 * SECOND_MS)
    assert await rig.phase(scope.id, E1) is Phase.STARTED
    rig.late_store.is_down = False
    await rig.clock.advance(SECOND_MS)
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    assert rig.calls.begun == [(E1, 1)]
    await engine.stop()


async def test_a_node_stops_also_while_the_store_is_away() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_down = True
    await engine.stop()
    rig.late_store.is_down = False
    second = await rig.node("second")
    rig.calls.lasts = False
    await rig.clock.advance(LEASE_MS + MINUTE_MS)
    assert rig.calls.begun == [(E1, 1), (E1, 2)]
    assert rig.calls.asked == [(E1, 2)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await second.stop()


async def test_a_driver_that_breaks_is_a_failure_with_its_reason() -> None:
    rig = LateRig()
    rig.calls.breaks = True
    engine = await rig.node()
    scope = await rig.scheduled(engine, E1)
    await approve(engine, scope, E1)
    await rig.clock.advance(10 * MINUTE_MS)
    event = (await rig.store.read(scope.id)).events[E1]
    assert event.phase is Phase.FAILED
    assert event.outcome == "gave up after attempt 5: KeyError"
    await engine.stop()


async def test_after_a_step_back_the_driver_is_asked_before_the_first_attempt_too() -> None:
    """The store has lost that the impact was begun, and even that it was over."""
    rig, engine, scope = await LateRig.started(E1)
    before = rig.late_store.snapshot()
    await approve(engine, scope, E1)
    await run_all()
    assert rig.calls.begun == [(E1, 1)]
    rig.calls.found = Found.DONE
    rig.late_store.put_back(before)
    engine._on_step_back()
    await approve(engine, scope, E1)
    await run_all()
    assert rig.calls.asked == [(E1, 1)]
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_after_a_step_back_a_driver_knows_that_the_first_attempt_may_be_under_way() -> None:
    rig, engine, scope = await LateRig.started(E1, E2)
    await approve(engine, scope, E1)
    engine._on_step_back()
    await approve(engine, scope, E2)
    await run_all()
    assert [(each.attempt, each.may_be_under_way) for each in rig.calls.orders] == [
        (1, False),
        (1, True),
    ]
    await engine.stop()


async def test_a_call_under_way_goes_on_under_the_nodes_other_name() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    before = rig.late_store.snapshot()
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.put_back(before)
    engine._on_step_back()
    await approve(engine, scope, E1)
    await rig.clock.advance(2 * LEASE_MS)
    assert rig.calls.begun == [(E1, 1)]
    rig.calls.end_all()
    await rig.clock.advance(SECOND_MS)
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


@pytest.mark.parametrize("found", Found)
async def test_what_the_driver_does_not_know_to_be_done_is_carried_out_again(found: Found) -> None:
    rig = LateRig()
    rig.calls.failures = 1
    rig.calls.found = found
    engine = await rig.node()
    scope = await rig.scheduled(engine, E1)
    await approve(engine, scope, E1)
    await rig.clock.advance(MINUTE_MS)
    assert rig.calls.asked == [(E1, 2)]
    again = [] if found is Found.DONE else [(E1, 2)]
    assert rig.calls.begun == [(E1, 1), *again]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_long_reason_is_cut() -> None:
    rig = LateRig()
    rig.calls.failures = 1
    rig.calls.reason = "x" * 10_000
    engine = await rig.node()
    scope = await rig.scheduled(engine, E1)
    await approve(engine, scope, E1)
    await rig.clock.advance(MINUTE_MS)
    told = [e.transition for e in await rig.entries() if isinstance(e.transition, AttemptFailed)]
    assert [each.reason for each in told] == ["x" * 500]
    await engine.stop()


async def test_an_order_says_all_that_a_driver_needs() -> None:
    rig = LateRig()
    engine = await rig.node()
    place = Place(test=True, driver_settings={"key": "value"})
    scope = await rig.declare(engine, VirtualMachine(name="db", place=place))
    command = Schedule(
        event_id=E1,
        type=EventType.FREEZE,
        targets=names("db"),
        notice_ms=HOUR_MS,
        duration_s=7,
        lasts_s=3,
    )
    await engine.submit(scope.id, command, by=ME)
    await approve(engine, scope, E1)
    await run_all()
    (order,) = rig.calls.orders
    assert (order.key, order.scope_id, order.type) == (E1, scope.id, EventType.FREEZE)
    assert (order.duration_s, order.lasts_s, order.settings) == (7, 3, {"key": "value"})
    assert [each.name for each in order.instances] == ["db"]
    assert order.started_ms == rig.clock.now()
    await engine.stop()


async def test_an_order_leaves_out_instances_that_are_gone() -> None:
    rig, engine, scope = await LateRig.started()
    both = Schedule(
        event_id=E1, type=EventType.REBOOT, targets=names("web-0", "web-2"), notice_ms=HOUR_MS
    )
    await engine.submit(scope.id, both, by=ME)
    gone = Operate(event_id=E2, kind=OperationKind.DELETE, instance=InstanceName("web-2"))
    await engine.submit(scope.id, gone, by=ME)
    await run_all()
    await approve(engine, scope, E1)
    await run_all()
    told = {each.key: [one.name for one in each.instances] for each in rig.calls.orders}
    assert told == {E2: ["web-2"], E1: ["web-0"]}
    await engine.stop()
