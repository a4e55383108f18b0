"""Time in the simulation: one true clock, and for each node one that is a little off."""

import asyncio
from dataclasses import dataclass, field

from fairwarning.core.instants import Instant, later

EPOCH = Instant(1_600_000_000_123)
"""Not a whole second, so that rounding mistakes show."""


@dataclass(slots=True, eq=False)
class SimAlarm:
    clock: "NodeClock"
    until: Instant | None = None
    waiter: asyncio.Future[None] | None = None
    rung: bool = False

    async def wait(self, until: Instant | None) -> None:
        if not self.rung and (until is None or until > self.clock.now()):
            self.until = until
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
            self.waiter = None
        self.rung = False

    async def pause(self, for_ms: int | None) -> None:
        await self.wait(None if for_ms is None else later(self.clock.now(), for_ms))

    def ring(self) -> None:
        if self.waiter is None or self.waiter.done():
            self.rung = True
        elif not self.clock.stopped:
            self.waiter.set_result(None)

    def close(self) -> None:
        if self in self.clock.alarms:
            self.clock.alarms.remove(self)

    def is_asleep(self) -> bool:
        return self.waiter is not None and not self.waiter.done()


@dataclass(slots=True, eq=False)
class NodeClock:
    base: "SimClock"
    skew_ms: int = 0
    stopped: bool = False
    alarms: list[SimAlarm] = field(default_factory=list)

    def now(self) -> Instant:
        return Instant(self.base.now() + self.skew_ms)

    def alarm(self) -> SimAlarm:
        alarm = SimAlarm(self)
        self.alarms.append(alarm)
        return alarm

    def next_ms(self) -> Instant | None:
        """In true time, when the first of this node's sleepers wants to be woken."""
        if self.stopped:
            return None
        times = (a.until for a in self.alarms if a.is_asleep() and a.until is not None)
        first = min(times, default=None)
        return None if first is None else Instant(first - self.skew_ms)

    def wake_due(self) -> None:
        for alarm in list(self.alarms):
            if alarm.is_asleep() and alarm.until is not None and alarm.until <= self.now():
                alarm.ring()


class SimClock:
    """The store's clock. `jump` moves it and wakes whoever is due, on every node."""

    def __init__(self) -> None:
        self._now = EPOCH
        self.nodes: list[NodeClock] = []

    def now(self) -> Instant:
        return self._now

    def alarm(self) -> SimAlarm:
        raise AssertionError("only nodes sleep")

    def jump(self, by_ms: int) -> None:
        self._now = Instant(self._now + by_ms)
        for node in self.nodes:
            if not node.stopped:
                node.wake_due()

    def next_ms(self) -> Instant | None:
        times = (node.next_ms() for node in self.nodes)
        return min((each for each in times if each is not None), default=None)
