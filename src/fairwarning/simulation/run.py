"""Runs the world of a seed. If it fails, finds a shorter plan that fails too."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.rollouts.model import RolloutPhase
from fairwarning.core.transitions import Scheduled
from fairwarning.engine.protocols import Due
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.notifications.records import WAITING
from fairwarning.simulation.checkers import Checker
from fairwarning.simulation.clock import SimLoop
from fairwarning.simulation.nodes import State
from fairwarning.simulation.plan import Shape, Step, shape_of, steps_of
from fairwarning.simulation.records import Broken, demand
from fairwarning.simulation.stores import StorePlace
from fairwarning.simulation.world import OPERATOR, World

RESTS_MAX = 3  # Each caller asks once more at most.
ROUNDS_MAX = 600  # A world that needs more has a bug.
RECHECK_MS = 5 * SECOND_MS
"""How often a node on a shared store polls, in case it missed a signal."""
NOTES_MS = 5 * MINUTE_MS
"""How often polls are noted in the store."""


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
            await _heal(world)
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


async def _heal(world: World) -> None:
    world.calls.failing_next.clear()
    for call in world.calls.waiting:
        call.is_held = False
    await world.settle()
    await _start_all(world)
    await _decide_rollouts(world)
    for _ in range(RESTS_MAX):
        await _end_all(world)
        await _come_to_rest(world)
        # A caller that waited until the store was followed again may have asked for more.
        if not await world.unfinished():
            break


async def _end_all(world: World) -> None:
    """Lets time pass until every event and rollout has ended."""
    for _ in range(ROUNDS_MAX):
        await world.settle()
        for impact in world.physical.running():
            world.note("impact", impact.key)
            if world.shape.drivers_fail:
                world.physical.fail(impact)
            else:
                world.physical.finish(impact)
        await world.quiesce()
        if world.calls.waiting or world.signals.waiting:
            continue
        if not await world.unfinished() and not await _unfinished_rollouts(world):
            break
        await _pass_time(world)


async def _start_all(world: World) -> None:
    """Waits until stopping nodes have stopped, and starts nodes so that at least one runs."""
    for _ in range(ROUNDS_MAX):
        if not any(node.state in (State.STOPPING, State.STOPPED) for node in world.nodes):
            break
        world.clock.jump(SECOND_MS)
        await world.settle()
    for number, node in enumerate(world.nodes):
        is_last = not any(each.is_alive or each.state is State.STARTING for each in world.nodes)
        if node.is_dead and (world.shape.all_come_back or is_last):
            world.start_node(number)
    await world.settle()
    up = all(node.is_alive or node.is_dead for node in world.nodes)
    demand("9 every event ends", up, lambda: "a node cannot stop or start")


async def _pass_time(world: World) -> None:
    """Lets time pass until the store's next deadline."""
    due = await world.store.due(1)
    _check_overdue(world, due)
    next_ms = world.clock.next_in_ms()
    demand("9 every event ends", next_ms is not None, lambda: "nobody has set an alarm")
    assert next_ms is not None
    if due.next_deadline_ms is not None and not due.scope_ids:
        next_ms = max(next_ms, min(due.next_deadline_ms - due.now_ms, DAY_MS))
    elif due.scope_ids:
        next_ms = min(next_ms, RECHECK_MS)
    elif not await world.unfinished():
        next_ms = max(next_ms, 10 * MINUTE_MS)
    world.clock.jump(next_ms)
    await world.quiesce()


def _check_overdue(world: World, due: Due) -> None:
    """Checks that no scope stays due for more than two polls of a node."""
    if not due.scope_ids:
        world.due_since_ms = None
        return
    now_ms = world.clock.steady_ms()
    since_ms = world.due_since_ms = world.due_since_ms if world.due_since_ms is not None else now_ms
    late_ms = now_ms - since_ms
    in_time = late_ms <= 2 * RECHECK_MS
    late = f"nobody looks at {due.scope_ids} for {late_ms} ms"
    demand("9 every event ends", in_time, lambda: late)


async def _decide_rollouts(world: World) -> None:
    """Resumes paused rollouts, which would otherwise wait for ever."""
    node = next(each for each in world.nodes if each.is_alive)
    if node.rollouts is None:
        return
    for kept in await RolloutRecords(world.store).unfinished(world.now()):
        if kept.rollout.phase is RolloutPhase.PAUSED:
            world.spawn(node.rollouts.resume(kept.rollout.id, by=OPERATOR))
            await world.settle()


async def _unfinished_rollouts(world: World) -> bool:
    unfinished = RolloutRecords(world.store).unfinished
    return world.shape.has_rollouts and bool(await unfinished(world.now()))


async def _come_to_rest(world: World) -> None:
    """Waits until every node has polled, noted its polls and repeated failed notifications."""
    for by_ms in (RECHECK_MS, RECHECK_MS, RECHECK_MS, NOTES_MS, NOTES_MS, RECHECK_MS):
        world.clock.jump(by_ms)
        await world.settle()
    for _ in range(20):
        if not await world.store.records(WAITING, limit=1):
            return
        world.clock.jump(2 * HOUR_MS)
        await world.settle()
