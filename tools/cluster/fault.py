"""Every fault has a name, a way to do it and a way to undo it."""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import psycopg

from fairwarning.live_check.nodes import Node
from fairwarning.live_check.records import At, now
from fairwarning.live_check.world import World
from tools.cluster.databases import Database
from tools.cluster.postgres_pair import NotInTime
from tools.cluster.small_disk import SmallDisk
from tools.cluster.wrong_clock import WrongClock

D = TypeVar("D", bound=Database)
_WRITABLE_S_MAX = 120.0  # Patroni needs 20 s or more. This only ends a hang.
_TRY_PAUSE_S = 0.01  # Short, because the figures begin when a write succeeds.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Generic[D]):
    """Everything that a fault may be done to."""

    database: D
    nodes: Sequence[Node]
    node_disks: Sequence[SmallDisk]
    node_clocks: Sequence[WrongClock]
    database_clock: WrongClock
    lease_s: float


class Fault(ABC, Generic[D]):
    """One fault, which is done once. What it is done to is chosen by `chance`."""

    name: ClassVar[str]
    lasts_s: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """How long it lasts at least and at most before it is undone."""

    def __init__(self, cluster: Cluster[D], world: World, chance: random.Random) -> None:
        self.cluster = cluster
        self.world = world
        self.chance = chance
        self.writable: At | None = None
        """When the database took a write again. It is None if that is tried after `undo`."""
        self.clock_step_ms = 0.0

    @abstractmethod
    async def do(self) -> str:
        """Does the fault, and returns what it was done to."""

    @abstractmethod
    async def undo(self) -> None: ...

    async def wait_until_writable(self) -> None:
        """Waits until the database has committed a write, and keeps the time of that."""
        self.writable = await asyncio.to_thread(_written, self.cluster.database.write)


def _written(write: Callable[[], None]) -> At:
    ends_s = time.monotonic() + _WRITABLE_S_MAX
    while True:
        try:
            write()
        except psycopg.Error as problem:
            if time.monotonic() > ends_s:
                raise NotInTime(f"the database takes no writes: {problem}") from None
            time.sleep(_TRY_PAUSE_S)
        else:
            return now()
