"""Actions of instances: they poll, hold a poll, approve what they were shown, and go away."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.model import EventId, ScopeKind
from fairwarning.simulation.actions.choices import NOTHING, Action, any_node, any_scope
from fairwarning.simulation.clients import Client, Question

if TYPE_CHECKING:
    from fairwarning.simulation.nodes import Node
    from fairwarning.simulation.world import World

_CLIENTS_MAX = 8  # Enough for several on each node.
_VERSIONS = (NEWEST.name, NEWEST.name, NEWEST.name, "2017-03-01")


async def _poll(world: World, rng: Random) -> str:
    """Polls a random node, mostly with the tag of the last document."""
    client = await _any_client(world, rng)
    node = any_node(world, rng)
    if client is None or node is None or node.service is None:
        return NOTHING
    tag = client.tag if rng.random() < 0.8 else ""
    wait_s = rng.choice([0, 0, 30, 300])
    # A client with a tag keeps its api-version, because the tag belongs to that version.
    version = NEWEST.name if tag else rng.choice(_VERSIONS)
    known = client if tag else None
    client.poll(_question(world, node, known=known, wait_s=wait_s, version=version))
    return f"{client.name} asks {node.name}, has {tag or 'nothing'}, waits {wait_s} s"


async def _start_request(world: World, rng: Random) -> str:
    clients = [each for each in world.clients if each.shown]
    node = any_node(world, rng)
    if not clients or node is None or node.service is None:
        return NOTHING
    client = rng.choice(clients)
    ids = tuple(rng.sample(client.shown, rng.randint(1, len(client.shown))))
    client.approve(_question(world, node, approves=ids))
    return f"{client.name} approves {', '.join(ids)} at {node.name}"


async def _client_leaves(world: World, rng: Random) -> str:
    waiting = [each for each in world.clients if each.question is not None]
    if not waiting:
        return NOTHING
    client = rng.choice(waiting)
    client.leave()
    return client.name


def _question(
    world: World,
    node: Node,
    *,
    known: Client | None = None,
    wait_s: int = 0,
    version: str = NEWEST.name,
    approves: tuple[EventId, ...] = (),
) -> Question:
    """Returns a request. If `known` is given, the request has the tag of that client's document."""
    return Question(
        node=node,
        tag=known.tag if known else "",
        document=known.document if known else b"",
        wait_s=wait_s,
        version=version,
        asked_ms=world.now(),
        clock_steps=world.clock_steps,
        approves=approves,
        past=world.past,
    )


async def _any_client(world: World, rng: Random) -> Client | None:
    """Returns a client that waits for no answer, and sometimes creates one. None if all wait."""
    if len(world.clients) < _CLIENTS_MAX and (not world.clients or rng.random() < 0.3):
        scope = await any_scope(world, rng)
        names = [each.name for each in scope.roster.live]
        if names and scope.roster.kind is not ScopeKind.CLOUD_SERVICE:
            name = rng.choice(names)
            addresses = scope.roster.instances[name].addresses
            client = Client(scope.id, name, rng.choice([None, *addresses]))
            client.now = world.now
            client.past = lambda: world.past
            world.clients.append(client)
    free = [each for each in world.clients if each.question is None]
    return rng.choice(free) if free else None


ACTIONS: dict[str, Action] = {
    "poll": _poll,
    "start_request": _start_request,
    "client_leaves": _client_leaves,
}
