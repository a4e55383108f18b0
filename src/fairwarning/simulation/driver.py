"""The physical world, where an impact goes on even if the node that began it dies.

Every call of a driver is recorded with its node, attempt and instant, and with what the store said
about the lease at that moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fairwarning.core.instants import Instant
from fairwarning.core.model import EventId, ScopeId
from fairwarning.engine.protocols import Alarm, DriverFailed, Found, Lease, Order


@dataclass(slots=True, eq=False)
class Impact:
    """What the drivers have really done to the instances of one event."""

    key: EventId
    scope_id: ScopeId
    runs: int = 0
    """How often the impact was carried out. More than once breaks promise 4."""
    attempt: int = 0
    """The highest attempt so far. A lower attempt is refused."""
    state: Found = Found.UNKNOWN
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    asked_about: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCall:
    """One call of `SimDriver.do`, as the checkers see it."""

    node: str
    holder: str
    """The name under which the node has the work. It changes after the store is set back."""
    key: EventId
    attempt: int
    at_ms: Instant
    past: int
    is_refused: bool
    """Whether the driver refused the call, because it had seen a higher attempt."""
    trouble: str
    """Why the store says that the node must not make this call. Empty if the node may."""


class World:
    """All impacts that were really carried out, by whichever node."""

    def __init__(self) -> None:
        self.impacts: dict[EventId, Impact] = {}
        self.calls: list[DriverCall] = []
        self.blind_repeats: list[str] = []
        self.past = 0
        self.hanging: list[asyncio.Future[None]] = []
        """The futures that dead nodes await. The garbage collector would end tasks without them."""

    def running(self) -> list[Impact]:
        return [each for each in self.impacts.values() if each.state is Found.RUNNING]

    def impact(self, order: Order) -> Impact:
        found = self.impacts.get(order.key)
        if found is None:
            found = self.impacts[order.key] = Impact(order.key, order.scope_id)
        return found

    def finish(self, impact: Impact) -> None:
        impact.state = Found.DONE
        self._answer(impact, None)

    def fail(self, impact: Impact) -> None:
        """Lets the impact fail without any effect. Another attempt may carry it out."""
        impact.state = Found.FAILED
        impact.runs = 0
        self._answer(impact, DriverFailed("simulated failure"))

    def lose_answer(self, impact: Impact) -> None:
        """Completes the impact, but tells the caller that it failed."""
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
    """The driver of one node, which acts on the physical world."""

    def __init__(
        self,
        world: World,
        node: str,
        now: Callable[[], Instant],
        trouble: Callable[[str, Order], Awaitable[str]],
    ) -> None:
        """`trouble` returns why a node must not carry out an order now, or "" if it may."""
        self._world = world
        self._node = node
        self._now = now
        self._trouble = trouble
        self.is_dead = False

    async def find(self, order: Order) -> Found:
        await self._live()
        impact = self._world.impact(order)
        impact.asked_about.add(order.attempt)
        impact.attempt = max(impact.attempt, order.attempt)
        return impact.state

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        await self._live()
        world, impact = self._world, self._world.impact(order)
        is_refused = order.attempt < impact.attempt
        world.calls.append(
            DriverCall(
                node=self._node,
                holder=order.node,
                key=order.key,
                attempt=order.attempt,
                at_ms=self._now(),
                past=world.past,
                is_refused=is_refused,
                trouble=await self._trouble(self._node, order),
            )
        )
        if is_refused:
            raise DriverFailed(f"attempt {impact.attempt} was seen already")
        impact.attempt = order.attempt
        if order.attempt > 1 and order.attempt not in impact.asked_about:
            world.blind_repeats.append(f"{order.key} attempt {order.attempt}")
        if impact.state is Found.DONE:
            return
        if impact.state is not Found.RUNNING:
            impact.state = Found.RUNNING
            impact.runs += 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        impact.waiting.append(waiter)
        await waiter

    async def _live(self) -> None:
        """Returns at once if the node is alive, and never if it is dead."""
        if self.is_dead:
            self._world.hanging.append(asyncio.get_running_loop().create_future())
            await self._world.hanging[-1]
