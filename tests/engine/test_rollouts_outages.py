"""Rollouts go on after an outage at any call, and announce nothing twice."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.refusals import Refused
from fairwarning.core.rollouts.advance import Advance, advance
from fairwarning.core.rollouts.model import Rollout, RolloutPhase
from fairwarning.engine import rollout_runner
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.rollouts import Rollouts
from fairwarning.stores.memory import MemoryStore
from tests.core.rollouts.test_advance import MONDAY
from tests.engine.harness import ME
from tests.engine.rolling import REBOOT, Node, web
from tests.notifications.rig import SharedStore
from tests.support.flaky import Flaky, every_call_fails


class World:
    """A node on a store that can fail, with a rollout through two update domains."""

    def __init__(self, store_kind: type[MemoryStore]) -> None:
        self.clock = VirtualClock(MONDAY)
        self.flaky = Flaky(store_kind(self.clock))
        self.node = Node(self.flaky.store, self.clock)

    async def start(self) -> Rollout:
        await self.node.start()
        await self.node.declare(web("a", 2, 2))
        return await self.node.rollouts.create(REBOOT, by=ME)

    async def check(self, rollout: Rollout) -> None:
        done = await self.node.rollouts.get(rollout.id)
        context = f"{self.flaky.calls} {done.outcome}"
        assert done.phase is RolloutPhase.COMPLETED, context
        assert [str(step.phase) for step in done.steps] == ["completed"] * 2, context
        assert len(await self.node.announced()) == 2, context
        assert [action for action, _, _ in await self.node.told()] == ["created", "completed"]


OUTAGES = [(MemoryStore, 1, 1), (MemoryStore, 4, 3), (SharedStore, 3, 2_000)]


@pytest.mark.parametrize(("store_kind", "at_once", "every"), OUTAGES)
async def test_an_outage_at_any_call_delays_and_doubles_nothing(
    store_kind: type[MemoryStore], at_once: int, every: int
) -> None:
    async def scenario(fails: range, is_late: bool) -> list[str]:
        world = World(store_kind)
        rollout = await world.start()
        await world.clock.settle()
        with world.flaky.failing(fails, is_late=is_late):
            await world.clock.advance(40 * MINUTE_MS)
        calls = world.flaky.calls
        await world.check(rollout)
        await world.node.stop()
        return calls

    met = {name async for name in every_call_fails(scenario, at_once=at_once, every=every)}
    # If no other node writes, the scopes were read before, and signals tell how they change.
    reads = {"read"} if store_kind is SharedStore else set()
    assert {"record rollout", "records rollout", "keep rollout", "transact"} | reads <= met


async def test_an_outage_while_it_starts_only_delays() -> None:
    async def scenario(fails: range, is_late: bool) -> list[str]:
        world = World(MemoryStore)
        rollout = await world.start()
        await world.clock.advance(5 * MINUTE_MS)
        await world.node.stop()
        world.node = Node(world.flaky.store, world.clock)
        with world.flaky.failing(fails, is_late=is_late):
            await world.node.start()
            await world.clock.settle()
        calls = world.flaky.calls
        await world.clock.advance(40 * MINUTE_MS)
        await world.check(rollout)
        await world.node.stop()
        return calls

    assert {name async for name in every_call_fails(scenario)} >= {"records rollout", "read"}


async def test_whoever_asks_during_an_outage_is_told_and_may_ask_again() -> None:
    """Each call that a question makes fails once; then the same question is answered."""

    async def scenario(fails: range, is_late: bool) -> list[str]:
        world = World(MemoryStore)
        rollout = await world.start()
        await world.node.rollouts.stop()
        rollouts = world.node.rollouts
        asked: list[Callable[[], Awaitable[object]]] = [
            partial(rollouts.preview, REBOOT),
            partial(rollouts.create, REBOOT, by=ME, seed="again"),
            partial(rollouts.get, rollout.id),
            rollouts.page,
            partial(rollouts.pause, rollout.id, by=ME),
            partial(rollouts.resume, rollout.id, by=ME),
            partial(rollouts.cancel, rollout.id, by=ME),
        ]
        with world.flaky.failing(fails, is_late=is_late):
            for ask in asked:
                try:
                    await ask()
                except StoreDown:
                    if ask is not asked[1] or not await is_made(rollouts):
                        with suppress(Refused):  # A cancel that was stored is over.
                            await ask()
        calls = world.flaky.calls
        assert (await rollouts.get(rollout.id)).phase is RolloutPhase.CANCELLED
        assert len(await rollouts.page()) == 2
        told = [action for action, _, _ in await world.node.told()]
        assert told == ["created", "created", "paused", "resumed", "cancelled"]
        await world.node.stop()
        return calls

    met = {name async for name in every_call_fails(scenario)}
    assert met >= {"keep rollout", "record rollout", "records rollout", "scopes"}


async def is_made(rollouts: Rollouts) -> bool:
    """As whoever has an idempotency key finds out."""
    try:
        await rollouts.made_for("again")
    except Refused:
        return False
    return True


async def test_a_rollout_that_stumbles_over_a_bug_goes_on_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a store of one node nobody else looks, and no signal need come."""
    world = World(MemoryStore)
    bugs = iter(range(3))

    def stumble(*args: Any, **named: Any) -> Advance:
        if next(bugs, None) is not None:
            raise RuntimeError("a bug")
        return advance(*args, **named)

    monkeypatch.setattr(rollout_runner, "advance", stumble)
    rollout = await world.start()
    await world.clock.advance(40 * MINUTE_MS)
    assert next(bugs, None) is None
    await world.check(rollout)
    await world.node.stop()
