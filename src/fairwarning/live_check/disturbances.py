"""Disturbs the round on purpose: kills, stops or pauses servers while they work."""

import asyncio
import time

from fairwarning.live_check.nodes import Node
from fairwarning.live_check.records import At, ClockReading
from fairwarning.live_check.world import World

_KILLED_SHARE = 0.75
"""The share of servers that are killed. The others are stopped, and hand their work back."""
_DOWN_S_MAX = 1.5  # Shorter than a lease, so that work may or may not move.
_WATCH_PAUSE_S = 0.1  # A server that died must be restarted soon.
_READING_EVERY_S = 1.0  # Enough to notice that a clock was set.
_LATE_S = 0.25  # More than the usual delay of a loaded machine.


async def kill_now_and_then(world: World, every_s: float, over: asyncio.Event) -> None:
    """Kills or stops a node and restarts it, about once in `every_s`, until the round is over."""
    chance = world.chance("kills")
    while await _waited(chance.uniform(0.5, 1.5) * every_s, over):
        node = chance.choice(world.nodes)
        async with node.busy:
            if chance.random() < _KILLED_SHARE:
                await node.kill(world.note)
            else:
                await node.stop(world.note)
            await asyncio.sleep(chance.uniform(0, _DOWN_S_MAX))
            await node.start(world.note)


async def pause_now_and_then(
    world: World, every_s: float, lease_s: float, over: asyncio.Event
) -> None:
    """Pauses a node for longer than its lease, about once in `every_s`, until the round is over."""
    chance = world.chance("pauses")
    while await _waited(chance.uniform(0.5, 1.5) * every_s, over):
        node = chance.choice(world.nodes)
        async with node.busy:
            await node.pause(lease_s * 1.2 + 1, world.note)


async def watch(world: World) -> None:
    """Restarts and records servers that end by themselves, until this task is cancelled. It also
    records the clocks, and how late the machine lets this task run.
    """
    planned_s = read_s = time.monotonic()
    while True:
        for node in world.nodes:
            if node.has_died and not node.busy.locked():
                await _revive(world, node)
        planned_s = max(planned_s + _WATCH_PAUSE_S, time.monotonic())
        await asyncio.sleep(max(0.0, planned_s - time.monotonic()))
        late_s = time.monotonic() - planned_s
        if late_s > _LATE_S or time.monotonic() - read_s > _READING_EVERY_S:
            read_s = time.monotonic()
            world.recorder.add(ClockReading(at=_both_clocks(), late_s=round(late_s, 3)))


async def _revive(world: World, node: Node) -> None:
    async with node.busy:
        node.note_death(world.note)
        await node.start(world.note)


def _both_clocks() -> At:
    """Reads both clocks at almost the same moment."""
    for _ in range(100):
        before_s, wall_ms, after_s = time.monotonic(), time.time() * 1000, time.monotonic()
        if after_s - before_s < 0.000_2:
            break
    return At(round(before_s, 6), round(wall_ms, 3))


async def _waited(seconds: float, over: asyncio.Event) -> bool:
    """Waits and returns True. Returns False as soon as the round is over."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return True
    return False
