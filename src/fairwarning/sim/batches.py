"""Commits in groups, as SQLite's writer makes them.

Several changes become durable together: first all signals are told, then all callers. If the
database fails at the commit, nothing of the batch is stored and nobody is told of it. And if
one of the jobs fails after it has written, all are undone and each runs again alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from fairwarning.engine.protocols import StoreDown
from fairwarning.sim.calls import WRITES, Call, Outcome, Verdict
from fairwarning.sim.stores import StoreCopy
from fairwarning.stores.memory import MemoryStore

if TYPE_CHECKING:
    from fairwarning.sim.world import World


class Fate(Enum):
    TOGETHER = "committed together"
    UNDONE = "undone together"
    ALONE = "undone, and each again alone"


def of_one_node(world: World, node: str) -> list[Call]:
    """The changes of this node that wait to be made."""
    return [
        call
        for call in world.free_calls()
        if call.node == node and call.name in WRITES and not call.is_done
    ]


async def commit(world: World, calls: Sequence[Call], fate: Fate) -> None:
    if isinstance(world.store, MemoryStore):
        await _commit_in_memory(world, world.store, calls, fate)
        return
    # A real database groups them itself.
    for call in calls:
        world.calls.release(call, Verdict.GO_ON)
    await world.quiesce()


async def _commit_in_memory(
    world: World, store: MemoryStore, calls: Sequence[Call], fate: Fate
) -> None:
    before = StoreCopy(store)
    world.gather_signals()
    for call in calls:
        call.outcome = await world.calls.run(call)
    if fate is not Fate.TOGETHER:
        before.put_back(store)
        world.drop_gathered()
    for call in calls:
        if fate is Fate.ALONE:
            call.outcome = await world.calls.run(call)
        elif fate is Fate.UNDONE:
            # Even a refusal may rest on a change that is undone now.
            world.calls.on_failure(call, Verdict.FAIL)
            call.outcome = Outcome(error=StoreDown("simulated outage at the commit"))
    world.tell_gathered()
    for call in calls:
        world.calls.release(call, Verdict.SETTLED)
    await world.quiesce()
