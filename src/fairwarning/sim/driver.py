"""The physical world: impacts that go on whether or not the node that began them lives."""

import asyncio
from dataclasses import dataclass, field

from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.ports import Alarm, DriverFailed, Found, Order


@dataclass(slots=True, eq=False)
class Impact:
    """One key in the physical world."""

    key: EventId
    scope_id: ScopeId
    runs: int = 0
    """How often the instance was really hit. More than once breaks promise 4."""
    state: Found = Found.RUNNING
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    asked_about: set[int] = field(default_factory=set)


class World:
    """What really happened, by key. Shared by all nodes, and it never crashes."""

    def __init__(self) -> None:
        self.impacts: dict[EventId, Impact] = {}
        self.blind_repeats: list[str] = []

    def running(self) -> list[Impact]:
        return [each for each in self.impacts.values() if each.state is Found.RUNNING]

    def finish(self, impact: Impact) -> None:
        impact.state = Found.DONE
        self._answer(impact, None)

    def fail(self, impact: Impact) -> None:
        """Nothing was done after all; another attempt may do it."""
        impact.state = Found.FAILED
        impact.runs = 0
        self._answer(impact, DriverFailed("simulated failure"))

    def lose_answer(self, impact: Impact) -> None:
        """It was done, but the caller is told that it failed."""
        impact.state = Found.DONE
        self._answer(impact, DriverFailed("simulated loss of the answer"))

    @staticmethod
    def _answer(impact: Impact, error: DriverFailed | None) -> None:
        for waiter in impact.waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        impact.waiting.clear()


class SimDriver:
    """One node's way to the physical world."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def find(self, order: Order) -> Found:
        impact = self._world.impacts.get(order.key)
        if impact is None:
            self._world.impacts[order.key] = impact = Impact(
                order.key, order.scope_id, state=Found.UNKNOWN
            )
        impact.asked_about.add(order.attempt)
        return impact.state

    async def carry_out(self, order: Order, alarm: Alarm) -> None:
        impact = self._world.impacts.get(order.key)
        if impact is None:
            self._world.impacts[order.key] = impact = Impact(order.key, order.scope_id)
            impact.state = Found.UNKNOWN
        if order.attempt > 1 and order.attempt not in impact.asked_about:
            self._world.blind_repeats.append(f"{order.key} attempt {order.attempt}")
        if impact.state is Found.DONE:
            return
        if impact.state is not Found.RUNNING:
            impact.state = Found.RUNNING
            impact.runs += 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        impact.waiting.append(waiter)
        await waiter
