"""The clocks of the simulation: one true clock, and for each node a clock that may be wrong.

There are two kinds of time. The wall clock can be set to another time, as by a mistake of an
operator or a bad time server. Steady time only passes. An alarm waits for an instant of the wall
clock or for a duration of steady time.
"""

import asyncio
from dataclasses import dataclass, field

from fairwarning.core.instants import Instant

EPOCH = Instant(1_600_000_000_123)
"""The first instant. It is not a whole second, so that rounding mistakes are found."""


@dataclass(slots=True, eq=False)
class SimAlarm:
    clock: "NodeClock"
    until: Instant | None = None
    """The time on the wall clock of the node at which the alarm rings, or None."""
    until_steady_ms: int | None = None
    waiter: asyncio.Future[None] | None = None
    rung: bool = False

    async def wait(self, until: Instant | None) -> None:
        self.until, self.until_steady_ms = until, None
        await self._sleep()

    async def pause(self, for_ms: int | None) -> None:
        self.until = None
        self.until_steady_ms = None if for_ms is None else self.clock.steady_ms() + for_ms
        await self._sleep()

    async def _sleep(self) -> None:
        left_ms = self.left_ms()
        if not self.rung and (left_ms is None or left_ms > 0):
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
            self.waiter = None
        self.rung = False

    def left_ms(self) -> int | None:
        if self.until is not None:
            return self.until - self.clock.now()
        if self.until_steady_ms is not None:
            return self.until_steady_ms - self.clock.steady_ms()
        return None

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
    """Whether the node is dead, so that no alarm wakes it."""
    alarms: list[SimAlarm] = field(default_factory=list)

    def now(self) -> Instant:
        return Instant(self.base.now() + self.skew_ms)

    def steady_ms(self) -> int:
        return self.base.steady_ms()

    def alarm(self) -> SimAlarm:
        alarm = SimAlarm(self)
        self.alarms.append(alarm)
        return alarm

    def next_in_ms(self) -> int | None:
        """Returns how long it is until the first alarm of this node, or None if there is none."""
        if self.stopped:
            return None
        left = (each.left_ms() for each in self.alarms if each.is_asleep())
        first = min((each for each in left if each is not None), default=None)
        return None if first is None else max(0, first)

    def wake_due(self) -> None:
        for alarm in list(self.alarms):
            left_ms = alarm.left_ms()
            if alarm.is_asleep() and left_ms is not None and left_ms <= 0:
                alarm.ring()


class SimLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still until the world moves it."""

    def __init__(self) -> None:
        self._moved_s = 0.0
        super().__init__()

    def time(self) -> float:
        return self._moved_s

    def move(self, by_s: float) -> None:
        self._moved_s += by_s

    def next_in_ms(self) -> int | None:
        """Returns how long it is until the first timer, or None if there is none."""
        # asyncio has no public way to ask which timers are set.
        timers = self._scheduled  # type: ignore[attr-defined]
        first = min((each.when() for each in timers if not each.cancelled()), default=None)
        return None if first is None else max(0, -int(-(first - self._moved_s) * 1000 // 1))

    def has_ready(self) -> bool:
        """Returns whether a task or callback could run now."""
        return bool(self._ready)  # type: ignore[attr-defined]


class SimClock:
    """The store's clock. When it moves, every alarm that is due rings, on every node."""

    def __init__(self, loop: SimLoop) -> None:
        self._now = EPOCH
        self._steady_ms = 0
        self._loop = loop
        self.nodes: list[NodeClock] = []

    def now(self) -> Instant:
        return self._now

    def steady_ms(self) -> int:
        return self._steady_ms

    def alarm(self) -> SimAlarm:
        raise AssertionError("only nodes sleep")

    def jump(self, by_ms: int) -> None:
        """Lets this much time pass, on the wall clock and on the steady clock."""
        assert by_ms >= 0, "time does not run backwards; that is a step"
        self._steady_ms += by_ms
        self._loop.move(by_ms / 1000)
        self.step(by_ms)

    def step(self, by_ms: int) -> None:
        """Sets the wall clock to another time without letting time pass."""
        self._now = Instant(self._now + by_ms)
        for node in self.nodes:
            if not node.stopped:
                node.wake_due()

    def next_in_ms(self) -> int | None:
        """Returns how long it is until the first alarm of any node, or None if there is none."""
        times = [node.next_in_ms() for node in self.nodes] + [self._loop.next_in_ms()]
        return min((each for each in times if each is not None), default=None)


def current() -> SimLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop), "a simulated world needs the simulation's own event loop"
    return loop
