"""Rollouts that several nodes of one store run and control."""

import asyncio
from typing import Any

from msgspec.structs import replace

from fairwarning.boot import make_store
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, later
from fairwarning.core.model import EventType
from fairwarning.core.rollouts.model import RolloutPhase, RolloutSpec
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Clock, Due, Receipt
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.stores.memory import MemoryStore
from tests.core.rollouts.test_advance import MONDAY
from tests.engine.harness import ME
from tests.engine.rolling import NIGHTS, REBOOT, Node, OvertakenStore, alone, web
from tests.engine.shared_store import SharedStore


class GatedStore(MemoryStore):
    """Holds up transactions while the gate is shut, as a slow disk does."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def transact(self, *args: Any, **named: Any) -> Receipt:
        if not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        return await super().transact(*args, **named)


async def test_a_pause_is_answered_only_when_nothing_is_being_announced_any_more() -> None:
    clock = VirtualClock(MONDAY)
    store = GatedStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"))
    store.gate.clear()
    rollout = await node.rollouts.create(REBOOT, by=ME)
    await store.held.wait()
    pausing = asyncio.create_task(node.rollouts.pause(rollout.id, by=ME))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not pausing.done()
    store.gate.set()
    await pausing
    assert len(await node.announced()) == 1
    await node.stop()


async def test_a_pause_from_another_node_comes_before_the_announcement_or_after_it() -> None:
    clock = VirtualClock(MONDAY)
    store = OvertakenStore(clock)
    node, other = Node(store, clock), Node(store, clock)
    await node.declare(web("a"))
    rollout = await other.rollouts.create(REBOOT, by=ME)
    store.meddle = lambda: other.rollouts.pause(rollout.id, by=ME)
    await node.start()
    await clock.advance(HOUR_MS)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.PAUSED
    assert not await node.announced()
    await node.stop()


async def test_a_rollout_that_another_node_made_is_noticed() -> None:
    clock = VirtualClock(MONDAY)
    node = await alone(clock)
    await node.declare(web("a"))
    await clock.settle()
    await Node(node.store, clock).rollouts.create(REBOOT, by=ME)
    await clock.settle()
    assert len(await node.announced()) == 1
    await node.stop()


class StoreAhead(SharedStore):
    """Its clock is an hour ahead of the node's."""

    async def due(self, limit: int) -> Due:
        due = await super().due(limit)
        return replace(due, now_ms=later(due.now_ms, HOUR_MS))


async def test_a_shared_store_says_what_time_it_is() -> None:
    clock = VirtualClock(MONDAY)
    node = Node(StoreAhead(clock), clock)
    await node.declare(web("a"))
    rollout = await node.rollouts.create(REBOOT, by=ME)
    assert rollout.created_ms == clock.now() + HOUR_MS
    await node.stop()


async def test_a_rollout_whose_signal_was_lost_is_noticed_all_the_same() -> None:
    clock = VirtualClock(MONDAY)
    store = SharedStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"))
    await clock.settle()
    store.signals = []
    await Node(store, clock).rollouts.create(REBOOT, by=ME)
    await clock.advance(5 * SECOND_MS)
    assert len(await node.announced()) == 1
    await node.stop()


async def test_after_a_step_back_rollouts_are_looked_at_at_once_and_read_anew() -> None:
    clock = VirtualClock(MONDAY)
    store = SharedStore(clock)
    node = await Node(store, clock).start()
    await node.declare(web("a"))
    rollout = await node.rollouts.create(replace(REBOOT, windows=NIGHTS), by=ME)
    saved = store.save()
    await node.rollouts.pause(rollout.id, by=ME)
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.PAUSED
    await clock.settle()
    store.restore(saved)
    kept = await RolloutRecords(store).find(rollout.id)
    await RolloutRecords(store).keep(kept.rollout, expected=kept.revision, by=ME)
    await clock.settle()
    looks = store.calls["records"]
    node.engine._on_step_back()
    await clock.settle()
    assert store.calls["records"] > looks
    assert (await node.rollouts.get(rollout.id)).phase is RolloutPhase.RUNNING
    await node.stop()


async def test_two_nodes_on_one_postgres_announce_each_domain_once(postgres_dsn: str) -> None:
    dsn = dict(part.split("=", 1) for part in postgres_dsn.split())
    url = f"postgresql://{dsn['user']}@/{dsn['dbname']}?host={dsn['host']}"
    clock = VirtualClock(MONDAY)
    stores = [make_store(url, clock, has_own_time=True) for _ in range(2)]
    for store in stores:
        await store.open()
    first, second = [await Node(store, clock).start() for store in stores]
    await first.declare(web("a"), web("b"))
    spec = RolloutSpec(type=EventType.REBOOT, duration_s=60, scopes_at_once=2)
    rollout = await first.rollouts.create(spec, by=ME)
    await clock.advance(20 * MINUTE_MS)
    await first.stop()
    await clock.advance(20 * MINUTE_MS)
    done = await second.rollouts.get(rollout.id)
    assert done.phase is RolloutPhase.COMPLETED
    assert [step.ended_ms is not None for step in done.steps] == [True] * 4
    assert len(await second.announced()) == 4
    await second.stop()
    for store in stores:
        await store.close()
