"""Faults of a node, and of the network between nodes and the database."""

from contextlib import AsyncExitStack
from typing import ClassVar

from fairwarning.live_check.disturbances import beyond
from tools.cluster import network
from tools.cluster.databases import Database
from tools.cluster.fault import Fault
from tools.cluster.network import Cut

_ALL_NODES_SHARE = 0.4  # Both happen: one node cut off, and all of them.
_CLOCK_STEPS_S = (-3600.0, -60.0, -2.0, 2.0, 60.0, 3600.0)


class Kill(Fault[Database]):
    """A node is killed with SIGKILL, and later started again."""

    name = "kill"
    lasts_s = (0.0, 2.0)

    async def do(self) -> str:
        self._node = self.chance.choice(self.cluster.nodes)
        self._held = AsyncExitStack()
        await self._held.enter_async_context(self._node.busy)
        told = self._node.name
        await self.end()
        return told

    async def end(self) -> None:
        await self._node.kill(self.world.note)

    async def undo(self) -> None:
        async with self._held:
            await self._node.start(self.world.note)


class Stop(Kill):
    """A node is stopped with SIGTERM, and hands its work back."""

    name = "stop"

    async def end(self) -> None:
        await self._node.stop(self.world.note)


class Pause(Fault[Database]):
    """A node stands still (SIGSTOP) for longer than its lease."""

    name = "pause"

    async def do(self) -> str:
        node = self.chance.choice(self.cluster.nodes)
        async with node.busy:
            await node.pause(beyond(self.cluster.lease_s), self.world.note)
        return node.name

    async def undo(self) -> None:
        """The node goes on already."""


class NodeDiskFull(Fault[Database]):
    """The disk with a node's log and its temporary files is full."""

    name = "node-disk-full"
    lasts_s = (4.0, 12.0)

    async def do(self) -> str:
        number = self.chance.randrange(len(self.cluster.nodes))
        self._disk = self.cluster.node_disks[number]
        self._disk.fill()
        return f"node-{number + 1}"

    async def undo(self) -> None:
        self._disk.empty()


class NodeClock(Fault[Database]):
    """The wall clock of a node is set, and later set right."""

    name = "node-clock"
    lasts_s = (4.0, 10.0)

    async def do(self) -> str:
        number = self.chance.randrange(len(self.cluster.nodes))
        ahead_s = self.chance.choice(_CLOCK_STEPS_S)
        self._clock = self.cluster.node_clocks[number]
        self._clock.set(ahead_s)
        return f"node-{number + 1} by {ahead_s:+.0f} s"

    async def undo(self) -> None:
        self._clock.set(0)


class _NetworkFault(Fault[Database]):
    how: ClassVar[Cut]

    async def do(self) -> str:
        every = range(1, len(self.cluster.nodes) + 1)
        is_all = self.chance.random() < _ALL_NODES_SHARE
        nodes = list(every) if is_all else [self.chance.choice(every)]
        network.cut(nodes, self.how)
        told = "all nodes" if is_all else f"node-{nodes[0]}"
        return f"{told}: {self.how}"

    async def undo(self) -> None:
        network.mend()


class ConnectionCut(_NetworkFault):
    """All connections to the database are reset, and new ones too."""

    name = "cut"
    how = Cut.RESET
    lasts_s = (0.2, 3.0)


class BlackHole(_NetworkFault):
    """The database does not answer, and nothing says why."""

    name = "blackhole"
    how = Cut.BOTH
    lasts_s = (3.0, 15.0)


class OneWayToDatabase(_NetworkFault):
    """What a node sends does not arrive; it still gets what the database sends."""

    name = "oneway-to-db"
    how = Cut.TO_DATABASE
    lasts_s = (3.0, 15.0)


class OneWayFromDatabase(_NetworkFault):
    """What a node sends arrives, and may be committed; the answer is lost."""

    name = "oneway-from-db"
    how = Cut.FROM_DATABASE
    lasts_s = (3.0, 15.0)
