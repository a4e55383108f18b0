"""Rollouts whose record or events change while nobody of this node looks."""

from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import Approve, Postpone, Schedule, Tick
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, later
from fairwarning.core.model import ENGINE
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import RolloutPhase
from fairwarning.engine import rollout_runner
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Listener, Receipt
from fairwarning.engine.rollouts import Rollouts
from fairwarning.stores.memory import MemoryStore
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


class BareSignals(MemoryStore):
    """Its signals only say that a scope has changed, so the scope must be read again."""

    def listen(self, listener: Listener) -> None:
        super().listen(lambda signal: listener(replace(signal, scope=None)))


async def test_a_scope_is_read_again_if_its_signal_does_not_carry_it() -> None:
    clock = VirtualClock(MONDAY)
    node = await Node(BareSignals(clock), clock).start()
    (scope_id,) = await node.declare(web("a", 2, 1))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    await node.rollouts.stop()
    # After a restart, the runner reads the scope when its event is announced already.
    node.rollouts = Rollouts(node.engine, node.store, clock)
    await node.rollouts.start()
    await clock.settle()
    (announced,) = await node.announced()
    await node.engine.submit(scope_id, Approve(event_id=announced, by=ME), by=ME)
    await clock.advance(2 * MINUTE_MS)
    assert await node.phases(rollout) == ["completed"]
    await node.stop()


class Announcing:
    """Commands of a rollout go through this, and may be refused."""

    def __init__(self, node: Node) -> None:
        self.real = node.engine.submit
        self.refusals: list[Refused] = []
        self.does_it_anyway = False
        self.calls = 0

    async def submit(self, *args: Any, **named: Any) -> Receipt:
        if not isinstance(args[1], Schedule) or not self.refusals:
            return await self.real(*args, **named)
        self.calls += 1
        if self.does_it_anyway:
            await self.real(*args, **named)
        raise self.refusals.pop(0)


async def test_a_refused_announcement_is_made_a_second_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a", 2, 1))
    announcing = Announcing(node)
    announcing.refusals = [Refused(Code.SCOPE_FULL, "not now")] * 2
    monkeypatch.setattr(node.engine, "submit", announcing.submit)
    await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(2 * rollout_runner.REFUSED_PAUSE_MS - 1)
    assert await node.announced() == []
    await clock.advance(1)
    assert len(await node.announced()) == 1
    await node.stop()


async def test_what_another_node_has_announced_already_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a", 2, 1))
    announcing = Announcing(node)
    announcing.refusals = [Refused(Code.EVENT_ID_USED, "it exists")]
    announcing.does_it_anyway = True
    monkeypatch.setattr(node.engine, "submit", announcing.submit)
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await clock.settle()
    assert (announcing.calls, len(await node.announced())) == (1, 1)
    await clock.advance(HOUR_MS)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.COMPLETED
    await node.stop()


async def test_a_pause_that_comes_before_a_step_is_stored_holds_the_step_back() -> None:
    """The runner has decided to announce, and then finds that the record was changed."""
    clock = VirtualClock(MONDAY)
    store = OvertakenStore(clock)
    node, other = await Node(store, clock).start(), Node(store, clock)
    await node.declare(web("a"))
    await node.rollouts.stop()
    rollout = await node.rollouts.create(REBOOT, by=ME)
    store.meddle = lambda: other.rollouts.pause(rollout.id, by=ME)
    await node.rollouts.start()
    await clock.settle()
    assert await node.announced() == []
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.PAUSED
    await other.rollouts.resume(rollout.id, by=ME)
    await clock.settle()
    assert len(await node.announced()) == 1
    await node.stop()


async def test_a_bug_while_rollouts_are_listed_only_delays_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a", 2, 1))
    runner = node.rollouts._runner
    listed, bugs = runner._records.unfinished, iter(range(2))

    async def stumble(*args: Any) -> Any:
        if next(bugs, None) is not None:
            raise RuntimeError("a bug")
        return await listed(*args)

    monkeypatch.setattr(runner._records, "unfinished", stumble)
    await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(2 * rollout_runner.OUTAGE_PAUSE_MS)
    assert len(await node.announced()) == 1
    assert "the rollouts stumbled and go on" in caplog.text
    await node.stop()


async def test_rollouts_that_were_stopped_can_be_started_and_stopped_again() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a", 2, 1))
    await node.rollouts.stop()
    await node.rollouts.stop()
    assert node.rollouts._runner._alarm is None
    await node.rollouts.create(REBOOT, by=ME)
    await clock.advance(HOUR_MS)
    assert await node.announced() == []
    await node.rollouts.start()
    await clock.settle()
    assert len(await node.announced()) == 1
    await node.stop()
