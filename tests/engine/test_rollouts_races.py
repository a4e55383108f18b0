"""Rollouts whose record or events change while nobody of this node looks."""

from msgspec.structs import replace

from fairwarning.core.commands import Approve, Postpone, Tick
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, later
from fairwarning.core.model import ENGINE
from fairwarning.core.rollouts.model import RolloutPhase
from fairwarning.engine.clocks import VirtualClock
from tests.core.builders import event_id
from tests.core.rollouts.test_advance import MONDAY
from tests.engine.harness import ME
from tests.engine.rolling import NIGHTS, REBOOT, Node, OvertakenStore, alone, web
from tests.engine.shared_store import SharedStore


async def test_a_pause_that_another_change_overtakes_is_made_all_the_same() -> None:
    clock = VirtualClock(MONDAY)
    store = OvertakenStore(clock)
    node, other = await Node(store, clock).start(), Node(store, clock)
    await node.declare(web("a"))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    await other.rollouts.pause(rollout.id, by=ME)
    store.meddle = lambda: other.rollouts.resume(rollout.id, by=ME)
    cancelled = await node.rollouts.cancel(rollout.id, by=ME)
    assert cancelled.phase is RolloutPhase.CANCELLED
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.CANCELLED
    actions = [action for action, _, _ in await node.told()]
    assert actions == ["created", "paused", "resumed", "cancelled"]
    await node.stop()


async def test_an_event_that_was_postponed_twice_and_forgotten_is_still_followed() -> None:
    """The runner was away for days. Only the store knows the first event and what replaced it."""
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    (scope_id,) = await node.declare(web("a", 2, 1))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    await node.rollouts.stop()
    (first,) = await node.announced()
    for old, new in ((first, event_id(901)), (event_id(901), event_id(902))):
        start = later(clock.now(), HOUR_MS)
        postpone = Postpone(event_id=old, new_event_id=new, not_before_ms=start)
        await node.engine.submit(scope_id, postpone, by=ME)
    approve = Approve(event_id=event_id(902), by=ME)
    await node.engine.submit(scope_id, approve, by=ME)
    await clock.advance(2 * DAY_MS)
    await node.engine.submit(scope_id, Tick(), by=ENGINE)
    assert not (await node.store.read(scope_id)).events
    await node.rollouts.start()
    await clock.advance(MINUTE_MS)
    assert await node.phases(rollout) == ["completed"]
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.COMPLETED
    await node.stop()


async def test_a_lost_signal_is_made_good_although_another_rollout_waits_until_night() -> None:
    clock = VirtualClock(MONDAY)
    store = SharedStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"), web("b"))
    await node.rollouts.create(replace(REBOOT, windows=NIGHTS), by=ME)
    await clock.settle()
    store.signals = []
    await Node(store, clock).rollouts.create(REBOOT, by=ME)
    await clock.advance(5 * SECOND_MS)
    assert len(await node.announced()) == 1
    await node.stop()
