"""Runs one seed, and shrinks one that fails."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairwarning.core.transitions import Scheduled
from fairwarning.sim.broken import Broken
from fairwarning.sim.checks import Checker
from fairwarning.sim.plan import Shape, Step, shape_of, steps_of
from fairwarning.sim.world import World, bury


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    seed: int
    steps: tuple[Step, ...]
    broken: str | None
    promise: str | None
    trace: tuple[str, ...]
    happened: Counter[str]


def run_seed(seed: int) -> Outcome:
    shape = shape_of(seed)
    return run_plan(seed, shape, steps_of(seed, shape))


def run_plan(seed: int, shape: Shape, steps: Sequence[Step]) -> Outcome:
    logging.getLogger("fairwarning.engine").setLevel(logging.CRITICAL)
    return asyncio.run(_run(seed, shape, steps))


async def _run(seed: int, shape: Shape, steps: Sequence[Step]) -> Outcome:
    world = World(shape)
    broken: Exception | None = None
    try:
        await world.begin()
        checker = Checker(world)
        await checker.begin()
        for step in steps:
            await world.take(step)
            await checker.look()
        world.trace.append(f"{world.now():>14} heal")
        await world.heal()
        await checker.look()
        await checker.look_at_end()
    except Exception as error:  # A bug shows itself as any exception; all end the run.
        broken = error
    finally:
        await bury()
    for entry in await world.store.journal(limit=100_000):
        world.happened[type(entry.transition).__name__] += 1
        if isinstance(entry.transition, Scheduled) and entry.transition.event.operation:
            world.happened[entry.transition.event.operation] += 1
    return Outcome(
        seed=seed,
        steps=tuple(steps),
        broken=None if broken is None else f"{type(broken).__name__}: {broken}",
        promise=broken.promise if isinstance(broken, Broken) else None,
        trace=tuple(world.trace),
        happened=world.happened,
    )


def shrink(outcome: Outcome) -> Outcome:
    """Leaves out ever smaller pieces of the plan as long as the same promise still breaks."""
    shape = shape_of(outcome.seed)
    best = outcome
    size = max(len(best.steps) // 2, 1)
    while True:
        first = 0
        while first < len(best.steps):
            steps = best.steps[:first] + best.steps[first + size :]
            tried = run_plan(outcome.seed, shape, steps)
            if tried.broken is not None and tried.promise == outcome.promise:
                best = tried
            else:
                first += size
        if size == 1:
            return best
        size //= 2
