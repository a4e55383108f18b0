"""A driver is called only under a lease that is known to hold, and its outcome is not lost."""

import asyncio

import pytest

from fairwarning.core.commands import Activate, Tick
from fairwarning.core.decide import decide
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.limits import Timing
from fairwarning.core.model import NodeId, Phase
from fairwarning.engine.protocols import Step
from fairwarning.engine.service import Rules
from tests.core.builders import E1
from tests.engine.harness import ME
from tests.engine.late_rig import LEASE_MS, LateRig, approve, run_all


@pytest.mark.parametrize("step_ms", [0, -HOUR_MS])
async def test_an_answer_later_than_the_lease_begins_nothing_while_another_node_has_it(
    step_ms: int,
) -> None:
    """Nor if an operator has put the clock back: a lease is measured by the steady one."""
    rig = LateRig()
    rig.clock.step(step_ms)
    first = await rig.node("first")
    scope = await rig.scheduled(first, E1)
    (caller,) = await rig.approve_late(first, scope, E1)
    rig.calls.lasts = True
    # It hears nothing of what happens meanwhile, as one that is cut off.
    assert first._running is not None
    first._running.cancel()
    second = await rig.node("second")
    await rig.clock.advance(LEASE_MS + 1_500)
    assert rig.calls.begun == [(E1, 2)]
    await rig.late_store.let_go(0)
    await caller
    assert rig.calls.begun == [(E1, 2)]
    await first.stop()
    await second.stop()


async def test_an_answer_that_leaves_too_little_of_the_lease_renews_it_first() -> None:
    rig, engine, scope = await LateRig.started(E1)
    rig.late_store.is_late = True
    rig.calls.lasts = True
    caller = approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_late = False
    await rig.clock.advance(LEASE_MS - 5 * SECOND_MS)
    await rig.late_store.let_go(0)
    await caller
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.lease_left_ms(scope.id, E1) == LEASE_MS
    await engine.stop()


async def test_a_lease_that_cannot_be_renewed_is_waited_for() -> None:
    rig, engine, scope = await LateRig.started(E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    await rig.clock.advance(LEASE_MS - 5 * SECOND_MS)
    rig.late_store.is_down = True
    await rig.late_store.let_go(0)
    await caller
    await rig.clock.advance(2 * SECOND_MS)
    assert rig.calls.begun == []
    rig.late_store.is_down = False
    await rig.clock.advance(SECOND_MS)
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_lease_that_was_lost_while_the_driver_was_asked_begins_nothing() -> None:
    """`find` takes longer than the lease, and meanwhile another node gets the third attempt."""
    rig = LateRig()
    rig.calls.failures = 1
    first = await rig.node("first")
    scope = await rig.scheduled(first, E1)

    async def take_long() -> None:
        rig.clock.elapse(LEASE_MS + SECOND_MS)
        await rig.store.transact(scope.id, _tick_of("another"), by=ME)

    rig.calls.on_find = take_long
    await approve(first, scope, E1)
    await rig.clock.advance(SECOND_MS)
    assert rig.calls.asked == [(E1, 2)]
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.holder(scope.id, E1) == ("another", 3)
    await first.stop()


def _tick_of(node: str) -> Step:
    """A turn of the scope by a node that is not in this process."""
    return lambda scope, moment: decide(scope, Tick(), moment.now_ms, node=NodeId(node))


async def test_an_attempt_that_is_nearly_over_is_not_begun() -> None:
    """Its lease cannot be made longer, so the next attempt is left to do it."""
    rig = LateRig()
    timing = Timing(attempt_ms=LEASE_MS)
    engine = await rig.node(rules=Rules(timing=timing))
    scope = await rig.scheduled(engine, E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    await rig.clock.advance(LEASE_MS - 5 * SECOND_MS)
    await rig.late_store.let_go(0)
    await caller
    assert rig.calls.begun == []
    await rig.clock.advance(MINUTE_MS)
    assert rig.calls.begun == [(E1, 2)]
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_an_impact_goes_on_whose_lease_ran_out_while_the_store_was_away() -> None:
    """The same node gets the next attempt, and the driver call of the first is still running."""
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    await rig.outage(LEASE_MS + MINUTE_MS)
    await rig.clock.advance(MINUTE_MS)
    assert rig.calls.begun == [(E1, 1)]
    assert (await rig.holder(scope.id, E1))[0] == "n1"
    await engine.stop()
    await rig.assert_given_back(scope.id, E1)


async def test_a_failure_after_an_outage_counts_for_the_attempt_that_the_node_has() -> None:
    """Otherwise it would be taken for old news, and the event would wait for its time limit."""
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    await rig.outage(LEASE_MS + MINUTE_MS)
    await rig.clock.advance(MINUTE_MS)
    rig.calls.failures = 1
    rig.calls.end_all()
    await rig.clock.advance(5 * SECOND_MS)
    kinds = await rig.history()
    assert kinds.count("AttemptFailed") == 1
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_failure_that_waited_for_the_store_counts_although_its_lease_ran_out() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_down = True
    rig.calls.failures = 1
    rig.calls.end_all()
    await rig.clock.advance(LEASE_MS + MINUTE_MS)
    rig.late_store.is_down = False
    await rig.clock.advance(5 * SECOND_MS)
    assert (await rig.history()).count("AttemptFailed") == 1
    assert await rig.phase(scope.id, E1) is Phase.COMPLETED
    await engine.stop()


async def test_a_call_that_takes_too_long_is_ended_before_the_next_attempt() -> None:
    """A call that hangs is a failure; the next attempt must not wait for it, nor go on with it."""
    rig, engine, scope = await LateRig.started(
        E1, lasts=True, rules=Rules(timing=Timing(attempt_ms=100 * SECOND_MS))
    )
    await approve(engine, scope, E1)
    await rig.clock.advance(99 * SECOND_MS)
    assert rig.calls.running == 1
    await rig.clock.advance(3 * SECOND_MS)
    assert rig.calls.begun == [(E1, 1), (E1, 2)]
    assert rig.calls.asked == [(E1, 2)]
    assert rig.calls.running == rig.calls.most == 1
    await engine.stop()


async def test_a_failure_whose_answer_was_lost_costs_no_attempt() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True, failures=1)
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_late = True
    rig.calls.end_all()
    await run_all()
    rig.late_store.is_late = False
    # The next attempt comes with somebody else's commit, before the answer is known to be lost.
    rig.clock.elapse(2 * SECOND_MS)
    await engine.submit(scope.id, Activate(), by=ME)
    await run_all()
    rig.late_store.lose(0)
    await rig.clock.advance(5 * SECOND_MS)
    assert rig.calls.begun == [(E1, 1), (E1, 2)]
    assert (await rig.history()).count("AttemptFailed") == 1
    await engine.stop()


async def test_one_failed_renewal_does_not_cost_the_lease() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await rig.clock.advance(LEASE_MS // 2 - 100)
    await rig.outage(200)
    await rig.clock.advance(SECOND_MS)
    assert await rig.lease_left_ms(scope.id, E1) > LEASE_MS - 2 * SECOND_MS
    await engine.stop()


async def test_a_late_answer_to_an_older_renewal_does_not_end_the_impact() -> None:
    """Meanwhile the node has got the next attempt, and the call under way serves it."""
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    rig.late_store.is_late = True
    advancing = asyncio.create_task(rig.clock.advance(LEASE_MS // 2))
    await run_all()
    assert len(rig.late_store.late) == 1, "the renewal is stored, and its answer is on its way"
    rig.late_store.is_late = False
    rig.clock.elapse(LEASE_MS + SECOND_MS)
    await engine.submit(scope.id, Tick(), by=ME)
    await rig.late_store.let_go(0)
    await run_all()
    assert rig.calls.running == 1
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.holder(scope.id, E1) == ("n1", 2)
    advancing.cancel()
    await engine.stop()


async def test_an_order_says_until_when_the_renewed_lease_lasts() -> None:
    rig, engine, scope = await LateRig.started(E1)
    (caller,) = await rig.approve_late(engine, scope, E1)
    rig.clock.elapse(LEASE_MS - SECOND_MS)
    await rig.late_store.let_go(0)
    await caller
    await run_all()
    assert rig.calls.begun == [(E1, 1)]
    assert [each.lease_until_ms for each in rig.calls.orders] == [rig.clock.now() + LEASE_MS]
    await engine.stop()


async def test_a_renewal_whose_answer_is_later_than_the_lease_begins_nothing() -> None:
    rig, engine, scope = await LateRig.started(E1)
    rig.late_store.is_late = True
    caller = approve(engine, scope, E1)
    await run_all()
    rig.clock.elapse(LEASE_MS - SECOND_MS)
    await rig.late_store.let_go(0)
    await caller
    assert len(rig.late_store.late) == 2, "the renewal is stored, and its answer is on its way"
    rig.late_store.is_late = False
    rig.clock.elapse(LEASE_MS + SECOND_MS)
    await rig.store.transact(scope.id, _tick_of("another"), by=ME)
    await rig.late_store.let_go(1)
    assert rig.calls.begun == []
    await engine.stop()


async def test_a_call_is_ended_when_another_node_has_the_work() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    rig.clock.elapse(LEASE_MS + SECOND_MS)
    await rig.store.transact(scope.id, _tick_of("another"), by=ME)
    await rig.clock.advance(SECOND_MS)
    assert rig.calls.running == 0
    assert rig.calls.begun == [(E1, 1)]
    assert await rig.phase(scope.id, E1) is Phase.STARTED
    assert (await rig.history()).count("AttemptFailed") == 0
    await engine.stop()


async def test_a_call_that_is_being_ended_serves_no_other_attempt() -> None:
    """The node has lost the work, the store steps back, and the node gets it again meanwhile."""
    rig = LateRig()
    rig.calls.lasts = True
    gate = asyncio.Event()

    async def clean_up() -> None:
        await gate.wait()

    rig.calls.on_cancel = clean_up
    engine = await rig.node()
    scope = await rig.scheduled(engine, E1)
    before = rig.late_store.snapshot()
    await approve(engine, scope, E1)
    await run_all()
    rig.clock.elapse(LEASE_MS + SECOND_MS)
    await rig.store.transact(scope.id, _tick_of("another"), by=ME)
    advancing = asyncio.create_task(rig.clock.advance(SECOND_MS))
    await run_all()
    rig.late_store.put_back(before)
    engine._on_step_back()
    await approve(engine, scope, E1)
    await run_all()
    gate.set()
    await run_all()
    assert rig.calls.begun == [(E1, 1), (E1, 1)]
    assert rig.calls.running == rig.calls.most == 1
    advancing.cancel()
    await engine.stop()


async def test_a_renewal_that_comes_after_the_next_attempt_does_not_end_the_impact() -> None:
    """It is of the attempt that the node had when it was sent, and so it changes nothing."""
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await run_all()
    gate = rig.late_store.gate = asyncio.Event()
    advancing = asyncio.create_task(rig.clock.advance(LEASE_MS // 2))
    await run_all()
    rig.late_store.gate = None
    rig.clock.elapse(LEASE_MS + SECOND_MS)
    await engine.submit(scope.id, Tick(), by=ME)
    assert await rig.holder(scope.id, E1) == ("n1", 2)
    gate.set()
    await run_all()
    assert rig.calls.running == 1
    assert rig.calls.begun == [(E1, 1)]
    advancing.cancel()
    await engine.stop()


async def test_a_call_goes_on_through_a_step_back_and_an_outage_behind_it() -> None:
    """The failures that count are those of the past that the store has now."""
    rig, engine, scope = await LateRig.started(E1, failures=1)
    before = rig.late_store.snapshot()
    await approve(engine, scope, E1)
    await run_all()
    rig.calls.lasts = True
    await rig.clock.advance(5 * SECOND_MS)
    assert rig.calls.begun == [(E1, 1), (E1, 2)]
    rig.late_store.put_back(before)
    engine._on_step_back()
    await approve(engine, scope, E1)
    await run_all()
    await rig.outage(LEASE_MS + MINUTE_MS)
    await rig.clock.advance(MINUTE_MS)
    assert rig.calls.begun == [(E1, 1), (E1, 2)]
    assert rig.calls.running == 1
    await engine.stop()


async def test_after_an_outage_the_lease_is_renewed_as_seldom_as_before() -> None:
    rig, engine, scope = await LateRig.started(E1, lasts=True)
    await approve(engine, scope, E1)
    await rig.clock.advance(LEASE_MS // 2 - 100)
    await rig.outage(200)
    await rig.clock.advance(SECOND_MS)
    revision = (await rig.store.read(scope.id)).revision
    await rig.clock.advance(3 * LEASE_MS)
    assert (await rig.store.read(scope.id)).revision <= revision + 7
    await engine.stop()
