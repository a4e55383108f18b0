"""Actions that break more than one call: a node, a driver, or the store's past."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from fairwarning.core.commands import Command, ReportDone, ReportFailure
from fairwarning.core.instants import SECOND_MS
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Found
from fairwarning.simulation.actions.choices import NOTHING, OPERATOR, Action, any_node, ask
from fairwarning.simulation.driver import Impact
from fairwarning.stores.memory import MemoryStore

if TYPE_CHECKING:
    from fairwarning.simulation.world import World

_BACKUPS_MAX = 3  # Each is a copy of the whole store.


async def _crash(world: World, rng: Random) -> str:
    node = any_node(world, rng)
    if node is None:
        return NOTHING
    world.crash(node)
    world.happened["crash"] += 1
    return node.name


async def _stop(world: World, rng: Random) -> str:
    node = any_node(world, rng)
    if node is None:
        return NOTHING
    world.stop_node(node)
    return node.name


async def _restart(world: World, rng: Random) -> str:
    dead = [number for number, node in enumerate(world.nodes) if node.is_dead]
    if not dead:
        return NOTHING
    number = rng.choice(dead)
    world.start_node(number)
    return world.nodes[number].name


async def _back_up(world: World, rng: Random) -> str:
    if not isinstance(world.store, MemoryStore) or len(world.backups) >= _BACKUPS_MAX:
        return NOTHING
    world.back_up()
    return f"number {len(world.backups)}"


async def _step_back(world: World, rng: Random) -> str:
    if not world.backups:
        return NOTHING
    number = rng.randrange(len(world.backups))
    world.step_back(number)
    # A fail-over takes time, so no line of the new past has the instant of a lost one.
    world.clock.jump(SECOND_MS)
    world.happened["store stepped back"] += 1
    return f"to number {number + 1}"


class NewerLine(Struct, frozen=True, kw_only=True):
    """A journal line that only a newer version of the program would write."""

    subject: str
    action: str
    detail: str = ""


async def _foreign_line(world: World, rng: Random) -> str:
    """Writes a line of a newer version to the journal, which this version cannot read."""
    line = cast(Noted, NewerLine(subject="sim", action="invented"))
    await world.store.keep("sim", "line", "{}", note=line, by=OPERATOR)
    return "a line of an unknown kind"


def _with_impact(world: World, rng: Random, what: str, do: Callable[[Impact], None]) -> str:
    running = world.physical.running()
    if not running:
        return NOTHING
    impact = rng.choice(running)
    do(impact)
    world.happened[what] += 1
    return impact.key


async def _impact(world: World, rng: Random) -> str:
    return _with_impact(world, rng, "impact over", world.physical.finish)


async def _impact_fails(world: World, rng: Random) -> str:
    return _with_impact(world, rng, "impact failed", world.physical.fail)


async def _answer_lost(world: World, rng: Random) -> str:
    return _with_impact(world, rng, "driver's answer lost", world.physical.lose_answer)


async def _stale_report(world: World, rng: Random) -> str:
    """Reports a true outcome of a driver once more, late or out of order."""
    known = [each for each in world.physical.impacts.values() if each.state is not Found.UNKNOWN]
    if not known:
        return NOTHING
    impact = rng.choice(known)
    command: Command = ReportDone(event_id=impact.key)
    if impact.state is not Found.DONE:
        failed = impact.attempt if impact.state is Found.FAILED else impact.attempt - 1
        if failed < 1:
            return NOTHING
        attempt = rng.randint(1, failed)
        command = ReportFailure(event_id=impact.key, attempt=attempt, reason="stale")
    world.happened["stale report"] += 1
    return await ask(world, await world.store.read(impact.scope_id), command, rng)


ACTIONS: dict[str, Action] = {
    "crash": _crash,
    "stop": _stop,
    "restart": _restart,
    "foreign_line": _foreign_line,
    "back_up": _back_up,
    "step_back": _step_back,
    "impact": _impact,
    "impact_fails": _impact_fails,
    "answer_lost": _answer_lost,
    "stale_report": _stale_report,
}
