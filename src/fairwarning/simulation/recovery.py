"""Ends a world: it stops all faults, and then all events must end."""

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.rollouts.model import RolloutPhase
from fairwarning.engine.protocols import Due
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.notifications.records import WAITING
from fairwarning.simulation.nodes import State
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import OPERATOR, World

ROUNDS_MAX = 600  # A world that needs more has a bug.
RECHECK_MS = 5 * SECOND_MS
"""How often a node on a shared store polls, in case it missed a signal."""
NOTES_MS = 5 * MINUTE_MS
"""How often polls are noted in the store."""


async def heal(world: World) -> None:
    world.calls.failing_next.clear()
    for call in world.calls.waiting:
        call.is_held = False
    await world.settle()
    await _start_all(world)
    await _decide_rollouts(world)
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
    await _come_to_rest(world)


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
