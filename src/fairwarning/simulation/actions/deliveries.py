"""Actions that let waiting calls and signals go on: in any order, late, twice or together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

from fairwarning.engine.protocols import StoreDown
from fairwarning.simulation.actions.choices import NOTHING, Action
from fairwarning.simulation.calls import BUSY, WRITES, Call, Decision, Outcome
from fairwarning.simulation.stores import StoreCopy
from fairwarning.stores.memory import MemoryStore

if TYPE_CHECKING:
    from fairwarning.simulation.world import World

_AT_ONCE_MAX = 4  # More would leave too few calls waiting.
_CALLS = (
    BUSY,
    "drop", "due", "end", "find_event", "history", "journal", "keep", "note_seen", "read", "record",
    "records", "scopes", "send", "transact",
)  # fmt: skip


async def _go_on(world: World, rng: Random) -> str:
    """Carries out or answers a few of the waiting calls, one after the other, in any order."""
    told: list[str] = []
    for _ in range(rng.randint(1, _AT_ONCE_MAX)):
        free = world.free_calls()
        if not free:
            break
        call = rng.choice(free)
        told.append(str(call))
        await world.release(call)
    return "; ".join(told) or NOTHING


async def _commit(world: World, rng: Random) -> str:
    """Commits a change, but holds its answer back until `_let_go`."""
    asking = [call for call in world.free_calls() if call.name == "transact" and not call.is_done]
    if not asking:
        return NOTHING
    call = rng.choice(asking)
    known = set(map(id, world.calls.waiting))
    await world.release(call)
    for each in world.calls.waiting:
        is_answer = each.is_done and (each.node, each.detail) == (call.node, call.detail)
        if is_answer and id(each) not in known:
            each.is_held = True
            world.happened["answer held"] += 1
    return str(call)


async def _let_go(world: World, rng: Random) -> str:
    """Delivers an answer that `_commit` held back."""
    held = sorted((c for c in world.calls.waiting if c.is_held), key=lambda call: call.place)
    if not held:
        return NOTHING
    call = rng.choice(held)
    await world.release(call)
    return str(call)


async def _batch(world: World, rng: Random) -> str:
    nodes = sorted({call.node for call in world.calls.waiting})
    groups = [group for node in nodes if len(group := of_one_node(world, node)) > 1]
    if not groups:
        return NOTHING
    group = rng.choice(groups)
    rng.shuffle(group)
    result = rng.choice([GroupResult.TOGETHER, *GroupResult])
    await commit(world, group, result)
    world.happened[result.value] += 1
    return f"{result.value}: " + "; ".join(map(str, group))


async def _deliver(world: World, rng: Random) -> str:
    """Delivers some of the signals under way, in any order, and some of them more than once."""
    told: list[str] = []
    for _ in range(rng.randint(1, _AT_ONCE_MAX)):
        if not world.signals.waiting:
            break
        signal = rng.choice(world.signals.waiting)
        told.append(str(signal))
        world.signals.deliver(signal, rng)
        await world.quiesce()
    return "; ".join(told) or NOTHING


async def _fail(world: World, rng: Random) -> str:
    free = world.free_calls()
    if not free:
        return NOTHING
    # Every kind of call is equally likely. Otherwise the rare kinds would never fail.
    name = rng.choice(sorted({call.name for call in free}))
    call = rng.choice([call for call in free if call.name == name])
    decision = Decision.BUSY if call.may_be_busy and rng.random() < 0.5 else Decision.FAIL
    await world.release(call, decision)
    return f"{call}: {decision.value}"


async def _fail_next(world: World, rng: Random) -> str:
    """Makes the next call of a randomly chosen method fail."""
    names = (*_CALLS, *["send"] * 6) if world.shape.targets else _CALLS
    fail_next = (rng.choice(names), rng.random() < 0.3)
    world.calls.failing_next.add(fail_next)
    return f"the next {fail_next[0]} {'loses its answer' if fail_next[1] else 'fails'}"


async def _outage(world: World, rng: Random) -> str:
    """Keeps one node from reaching the store for a while."""
    node = rng.choice(world.nodes)
    failed = 0
    for _ in range(rng.randint(1, 3)):
        for call in world.free_calls():
            if call.node == node.name:
                world.calls.release(call, Decision.FAIL)
                failed += 1
        await world.quiesce()
        world.clock.jump(rng.choice([0, 500, 1_000]))
        await world.quiesce()
    world.happened["outage"] += bool(failed)
    return f"{node.name}: {failed} calls failed"


async def _settle(world: World, rng: Random) -> str:
    signals = rng.random() < 0.5
    await world.settle(signals=signals)
    return "with all signals" if signals else ""


async def _caller_leaves(world: World, rng: Random) -> str:
    """Cancels a caller before it gets its answer."""
    callers = [task for task in world.callers if not task.done()]
    if not callers:
        return NOTHING
    rng.choice(callers).cancel()
    world.happened["caller left"] += 1
    return ""


class GroupResult(Enum):
    TOGETHER = "committed together"
    UNDONE = "undone together"
    ALONE = "undone, and each again alone"


def of_one_node(world: World, node: str) -> list[Call]:
    """Returns the calls of this node that change the store and wait to begin."""
    return [
        call
        for call in world.free_calls()
        if call.node == node and call.name in WRITES and not call.is_done
    ]


async def commit(world: World, calls: Sequence[Call], result: GroupResult) -> None:
    if isinstance(world.store, MemoryStore):
        await _commit_in_memory(world, world.store, calls, result)
        return
    # A real database groups them itself.
    for call in calls:
        world.calls.release(call, Decision.GO_ON)
    await world.quiesce()


async def _commit_in_memory(
    world: World, store: MemoryStore, calls: Sequence[Call], result: GroupResult
) -> None:
    before = StoreCopy(store)
    world.gather_signals()
    for call in calls:
        call.outcome = await world.calls.run(call)
    if result is not GroupResult.TOGETHER:
        before.put_back(store)
        world.drop_gathered()
    for call in calls:
        if result is GroupResult.ALONE:
            call.outcome = await world.calls.run(call)
        elif result is GroupResult.UNDONE:
            # A refusal fails too, because it may depend on a change that is now undone.
            world.calls.on_failure(call, Decision.FAIL)
            call.outcome = Outcome(error=StoreDown("simulated outage at the commit"))
    world.tell_gathered()
    for call in calls:
        world.calls.release(call, Decision.SETTLED)
    await world.quiesce()


ACTIONS: dict[str, Action] = {
    "go_on": _go_on,
    "commit": _commit,
    "let_go": _let_go,
    "batch": _batch,
    "deliver": _deliver,
    "fail": _fail,
    "outage": _outage,
    "fail_next": _fail_next,
    "settle": _settle,
    "caller_leaves": _caller_leaves,
}
