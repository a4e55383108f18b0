"""Chooses the node, scope or instances of an action with the random numbers of its step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, Event, InstanceName, Phase, Scope, operator_actor
from fairwarning.simulation.records import CallerRequest

if TYPE_CHECKING:
    from fairwarning.simulation.nodes import Node
    from fairwarning.simulation.world import World

Action = Callable[["World", Random], Awaitable[str]]
OPERATOR = operator_actor("sim")
NOTHING = "nothing to do"


def any_node(world: World, rng: Random) -> Node | None:
    """Returns a random node that answers, or None if there is none."""
    alive = [node for node in world.nodes if node.is_alive]
    return rng.choice(alive) if alive else None


async def ask(
    world: World, scope: Scope, command: Command, rng: Random, by: Actor = OPERATOR
) -> str:
    node = any_node(world, rng)
    if node is None:
        return "no node is alive"
    world.ask(node, CallerRequest(scope_id=scope.id, command=command, by=by))
    return f"{node.name} {command}"


async def any_scope(world: World, rng: Random) -> Scope:
    return await world.store.read(rng.choice(world.scope_ids))


def instances(scope: Scope, rng: Random) -> tuple[InstanceName, ...]:
    """Returns random instances, mostly of one update domain. Sometimes the name is unknown."""
    names = list(scope.roster.instances)
    if not names or rng.random() < 0.03:
        return (InstanceName("stranger"),)
    first = scope.roster.instances[rng.choice(names)]
    same = [n for n in names if scope.roster.instances[n].update_domain == first.update_domain]
    pool = names if rng.random() < 0.1 else same
    return tuple(rng.sample(pool, rng.randint(1, min(3, len(pool)))))


def any_event(scope: Scope, rng: Random, *phases: Phase) -> Event | None:
    found = [each for each in scope.events.values() if each.phase in phases]
    return rng.choice(found) if found else None
