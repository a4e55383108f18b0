"""Disturbances kill, stop or pause servers during the load of a round."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fairwarning.live_check.world import World

_KILLED_SHARE = 0.75
"""How often a server is killed. Else it is stopped and hands its work back, which is easier."""
_DOWN_S_MAX = 1.5  # Shorter than a lease, so that work may or may not move.

Disturbance = Callable[[World, asyncio.Event], Coroutine[Any, Any, None]]
"""It disturbs the servers until the event is set, and then leaves all of them running."""


@dataclass(frozen=True, slots=True)
class Kills:
    """Kills or stops a node and restarts it, about once in `every_s`."""

    every_s: float

    async def __call__(self, world: World, over: asyncio.Event) -> None:
        chance = world.chance("kills")
        while await waited(chance.uniform(0.5, 1.5) * self.every_s, over):
            node = chance.choice(world.nodes)
            async with node.busy:
                if chance.random() < _KILLED_SHARE:
                    await node.kill(world.note)
                else:
                    await node.stop(world.note)
                await asyncio.sleep(chance.uniform(0, _DOWN_S_MAX))
                await node.start(world.note)


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses a node for longer than its lease, about once in `every_s`."""

    every_s: float
    lease_s: float

    async def __call__(self, world: World, over: asyncio.Event) -> None:
        chance = world.chance("pauses")
        while await waited(chance.uniform(0.5, 1.5) * self.every_s, over):
            node = chance.choice(world.nodes)
            async with node.busy:
                await node.pause(beyond(self.lease_s), world.note)


def beyond(lease_s: float) -> float:
    """Returns a time after which the lease of a paused node has certainly ended."""
    return lease_s * 1.2 + 1


async def waited(seconds: float, over: asyncio.Event) -> bool:
    """Waits and returns True. Returns False as soon as the round is over."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return True
    return False
