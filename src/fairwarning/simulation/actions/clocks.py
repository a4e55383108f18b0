"""Actions that let time pass or set clocks wrong."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import Phase
from fairwarning.simulation.actions.choices import NOTHING, Action, any_node, any_scope

if TYPE_CHECKING:
    from fairwarning.simulation.world import World

_LEASE_IS_OVER_MS = 31 * SECOND_MS  # A second longer than the lease of 30 s.


async def _deadline(world: World, rng: Random) -> str:
    """Lets time pass to the next alarm, or to a moment close to some event's NotBefore."""
    scope = await any_scope(world, rng)
    targets = [event.not_before_ms - world.now() for event in scope.in_phase(Phase.SCHEDULED)]
    next_ms = world.clock.next_in_ms()
    if next_ms is not None:
        targets.append(next_ms)
    ahead = [each for each in targets if each > 0]
    if not ahead:
        return NOTHING
    by_ms = rng.choice(ahead) + rng.choice([-1, 0, 0, 1])
    world.clock.jump(by_ms)
    return f"+{by_ms} ms"


async def _later(world: World, rng: Random) -> str:
    short = [1, SECOND_MS, 5 * SECOND_MS, _LEASE_IS_OVER_MS, _LEASE_IS_OVER_MS]
    long = [5 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS + HOUR_MS]
    by_ms = rng.choice([*short, *long])
    world.clock.jump(by_ms)
    return f"+{by_ms} ms"


async def _clock_step(world: World, rng: Random) -> str:
    by_ms = rng.choice([-1, -1000, -5 * MINUTE_MS, 5 * MINUTE_MS])
    world.clock.step(by_ms)
    world.clock_steps += 1
    world.was_stepped_ahead |= by_ms > 0
    for node in world.nodes:
        # Times of polls before the step cannot be compared with times of notes after it.
        node.last_polls.clear()
    world.happened["clock stepped back" if by_ms < 0 else "clock stepped ahead"] += 1
    return f"{by_ms:+} ms"


async def _node_clock_step(world: World, rng: Random) -> str:
    """Sets the clock of one node wrong. On a shared store, nothing may depend on that clock."""
    node = any_node(world, rng)
    if node is None or not world.shape.is_shared:
        return NOTHING
    node.clock.skew_ms += rng.choice([-HOUR_MS, -31 * SECOND_MS, 31 * SECOND_MS, HOUR_MS])
    node.clock.wake_due()
    return f"{node.name} is {node.clock.skew_ms} ms off"


ACTIONS: dict[str, Action] = {
    "deadline": _deadline,
    "later": _later,
    "clock_step": _clock_step,
    "node_clock_step": _node_clock_step,
}
