"""Actions of operators on rollouts."""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random
from typing import TYPE_CHECKING

from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import EventType
from fairwarning.core.refusals import Refused
from fairwarning.core.rollouts.model import Rollout, RolloutSpec, Window
from fairwarning.engine.protocols import StoreDown
from fairwarning.simulation.actions.choices import NOTHING, OPERATOR, Action, any_node

if TYPE_CHECKING:
    from fairwarning.simulation.world import World

_ROLLOUTS_MAX = 3  # More would only wait for each other.
_EVERY_DAY = tuple(range(7))
_WINDOWS = (
    Window(days=_EVERY_DAY, from_minute=6 * 60, to_minute=18 * 60),
    Window(days=_EVERY_DAY, from_minute=12 * 60, to_minute=14 * 60),
)


async def _create(world: World, rng: Random) -> str:
    node = any_node(world, rng)
    if node is None or node.rollouts is None or len(world.rollout_ids) >= _ROLLOUTS_MAX:
        return NOTHING
    scopes = rng.sample(world.scope_ids, rng.randint(0, len(world.scope_ids)))
    spec = RolloutSpec(
        type=rng.choice([EventType.REBOOT, EventType.FREEZE]),
        scope_ids=tuple(scopes),
        duration_s=rng.choice([None, 60]),
        scopes_at_once=rng.randint(1, 2),
        pause_ms=rng.choice([0, 0, MINUTE_MS]),
        stop_on_failure=rng.random() < 0.5,
        windows=rng.choice([(), (), _WINDOWS[:1], _WINDOWS[1:]]),
    )
    world.spawn(_note(world, node.rollouts.create(spec, by=OPERATOR)))
    return f"{node.name} {spec}"


async def _decide(world: World, rng: Random) -> str:
    node = any_node(world, rng)
    if node is None or node.rollouts is None or not world.rollout_ids:
        return NOTHING
    id = rng.choice(world.rollout_ids)
    what = rng.choice(["pause", "resume", "resume", "cancel"])
    world.spawn(_note(world, getattr(node.rollouts, what)(id, by=OPERATOR)))
    return f"{node.name} {what} {id}"


async def _note(world: World, deciding: Awaitable[Rollout]) -> None:
    try:
        rollout = await deciding
    except StoreDown:
        return
    except Refused:
        world.happened["rollout refused"] += 1
        return
    if rollout.id not in world.rollout_ids:
        world.rollout_ids.append(rollout.id)


ACTIONS: dict[str, Action] = {"rollout": _create, "decide_rollout": _decide}
