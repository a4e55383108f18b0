"""A node with its rollouts, and a fleet to roll through."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from fairwarning.core.commands import Activate
from fairwarning.core.model import ENGINE, EventId, EventType, NodeId, ScopeId
from fairwarning.core.resources import AvailabilitySet, Member, Place, Resource
from fairwarning.core.rollouts.model import Rollout, RolloutSpec
from fairwarning.core.rollouts.windows import parse_window
from fairwarning.core.transitions import Noted, Scheduled
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Clock, Record, Store
from fairwarning.engine.rollouts import Rollouts
from fairwarning.engine.service import Engine
from fairwarning.stores.memory import MemoryStore
from tests.engine.harness import ME, ids, kill

REBOOT = RolloutSpec(type=EventType.REBOOT, duration_s=60)
NIGHTS = (parse_window("daily 22:00-04:00"),)
_numbers = count(1)


def web(name: str, instances: int = 4, domains: int = 2, *, test: bool = False) -> Resource:
    members = tuple(Member(name=f"{name}-{n}") for n in range(instances))
    place = Place(test=test)
    return AvailabilitySet(name=name, update_domains=domains, members=members, place=place)


class Node:
    """An engine and its rollouts, as the program makes them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.driver = SimulatedDriver(clock)
        self.engine = Engine(
            store=store,
            clock=clock,
            drivers={"simulated": self.driver},
            node=NodeId(f"n{next(_numbers)}"),
            ids=ids(),
        )
        self.rollouts = Rollouts(self.engine, store, clock)

    async def start(self) -> "Node":
        await self.rollouts.start()
        await self.engine.start()
        return self

    async def stop(self) -> None:
        await self.rollouts.stop()
        await self.engine.stop()

    async def kill(self) -> None:
        """The runner keeps nothing in memory, so to stop it is as bad as any death."""
        kill(self.engine)
        await self.rollouts.stop()

    async def declare(self, *resources: Resource) -> list[ScopeId]:
        scopes = await self.engine.declare(resources, by=ME)
        for scope in scopes:
            await self.engine.submit(scope.id, Activate(), by=ENGINE)
        return [scope.id for scope in scopes]

    async def phases(self, rollout: Rollout) -> list[str]:
        return [str(step.phase) for step in (await self.rollouts.get(rollout.id)).steps]

    async def told(self) -> list[tuple[str, str, str]]:
        """What the history says of rollouts: what was done, by whom and why."""
        entries = await self.store.journal(limit=10_000)
        return [
            (e.transition.action, str(e.by), e.why)
            for e in entries
            if isinstance(e.transition, Noted)
        ]

    async def announced(self) -> list[EventId]:
        entries = await self.store.journal(limit=10_000)
        return [e.transition.event.id for e in entries if isinstance(e.transition, Scheduled)]


class OvertakenStore(MemoryStore):
    """Somebody else changes a record just before it is written."""

    meddle: Callable[[], Awaitable[object]] | None = None

    async def keep(self, *args: Any, **named: Any) -> Record:
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            await meddle()
        return await super().keep(*args, **named)


async def alone(clock: VirtualClock) -> Node:
    return await Node(MemoryStore(clock), clock).start()
