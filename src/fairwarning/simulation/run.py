"""Runs the world of a seed. If it fails, finds a shorter plan that fails too."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairwarning.core.transitions import Scheduled
from fairwarning.simulation.checkers import Checker
from fairwarning.simulation.clock import SimLoop
from fairwarning.simulation.plan import Shape, Step, shape_of, steps_of
from fairwarning.simulation.records import Broken
from fairwarning.simulation.recovery import heal
from fairwarning.simulation.stores import StorePlace
from fairwarning.simulation.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    seed: int
    steps: tuple[Step, ...]
    broken: str | None
    promise: str | None
    trace: tuple[str, ...]
    happened: Counter[str]


MEMORY = StorePlace()
REAL_STEPS = 90
"""How many steps a world has on a real database, where each step takes much longer."""


def run_seed(seed: int, place: StorePlace = MEMORY) -> Outcome:
    shape = _shape(seed, place)
    steps = steps_of(seed, shape) if place.is_memory else steps_of(seed, shape, REAL_STEPS)
    return run_plan(seed, steps, place)


def _shape(seed: int, place: StorePlace) -> Shape:
    return shape_of(seed, may_be_shared=place.may_be_shared, may_step_back=place.is_memory)


def run_plan(seed: int, steps: Sequence[Step], place: StorePlace = MEMORY) -> Outcome:
    with asyncio.Runner(loop_factory=SimLoop) as runner:
        return runner.run(_run(seed, _shape(seed, place), steps, place))


async def _run(seed: int, shape: Shape, steps: Sequence[Step], place: StorePlace) -> Outcome:
    world = World(shape, place)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: _hear(world, context))
    broken: Exception | None = None
    with _listening(world):
        try:
            await world.begin()
            checker = Checker(world)
            await checker.begin()
            await checker.check()
            for step in steps:
                await world.take(step)
                await checker.check()
            world.note("heal", "no more faults from here on")
            await heal(world)
            await checker.check()
            await checker.check_at_end()
            await _count(world)
        except Exception as error:  # A bug shows itself as any exception; all end the run.
            broken = error
        finally:
            await world.end()
    return Outcome(
        seed=seed,
        steps=tuple(steps),
        broken=None if broken is None else f"{type(broken).__name__}: {broken}",
        promise=broken.promise if isinstance(broken, Broken) else None,
        trace=tuple(world.trace),
        happened=world.happened,
    )


async def _count(world: World) -> None:
    for entry in await world.store.journal(limit=100_000):
        world.happened[type(entry.transition).__name__] += 1
        if isinstance(entry.transition, Scheduled) and entry.transition.event.operation:
            world.happened[entry.transition.event.operation] += 1


def _hear(world: World, context: dict[str, Any]) -> None:
    """Records an error that a callback raised. Errors of tasks that nobody awaits are ignored."""
    if "never retrieved" not in context["message"]:
        world.errors.append(context.get("exception") or RuntimeError(context["message"]))


class _Listener(logging.Handler):
    """Counts every error in the log as a failure of the world."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if self._world.past and record.name.startswith("fairwarning.notifications"):
            # Notifications may be about an entry that was lost. Then they log this and go on.
            return
        if self._world.past and "the store has stepped back" in record.getMessage():
            self._world.happened["step back noticed"] += 1
            return
        error = record.exc_info[1] if record.exc_info else None
        self._world.errors.append(error or RuntimeError(record.getMessage()))


@contextmanager
def _listening(world: World) -> Iterator[None]:
    log = logging.getLogger("fairwarning")
    listener, goes_on = _Listener(world), log.propagate
    log.addHandler(listener)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate = goes_on


def shrink(outcome: Outcome, place: StorePlace = MEMORY) -> Outcome:
    """Returns the outcome of the shortest plan found that breaks the same promise. It tries to
    leave out parts of the plan, first large ones and then smaller ones.
    """
    best = outcome
    size = max(len(best.steps) // 2, 1)
    while True:
        first = 0
        while first < len(best.steps):
            steps = best.steps[:first] + best.steps[first + size :]
            tried = run_plan(outcome.seed, steps, place)
            if tried.broken is not None and tried.promise == outcome.promise:
                best = tried
            else:
                first += size
        if size == 1:
            return best
        size //= 2
