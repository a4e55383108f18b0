"""This module has the system clock, and a virtual clock that tests and rehearsals move."""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count

from fairwarning.core.instants import SECOND_MS, Instant, later
from fairwarning.engine.protocols import Alarm

_SLICE_MS = 1_000
"""How long a sleeper waits before it reads the wall clock again, which may have been set."""


class SystemAlarm:
    """The alarm of one sleeper. It must be cheap, because each impact under way has two alarms."""

    def __init__(self, clock: "SystemClock") -> None:
        self._clock = clock
        self._rung = False
        self._sleeper: asyncio.Future[None] | None = None

    async def wait(self, until: Instant | None) -> None:
        while until is not None and not self._rung:
            left_ms = until - self._clock.now()
            if left_ms <= 0:
                break
            await self._doze(min(left_ms, _SLICE_MS))
        else:
            await self._doze(None)
        self._rung = False

    async def pause(self, for_ms: int | None) -> None:
        await self._doze(for_ms)
        self._rung = False

    async def _doze(self, for_ms: int | None) -> None:
        if self._rung:
            return
        loop = asyncio.get_running_loop()
        sleeper = self._sleeper = loop.create_future()
        timer = None if for_ms is None else loop.call_later(for_ms / 1000, _wake, sleeper)
        try:
            await sleeper
        finally:
            self._sleeper = None
            if timer is not None:
                timer.cancel()

    def ring(self) -> None:
        self._rung = True
        if self._sleeper is not None:
            _wake(self._sleeper)

    def close(self) -> None:
        pass


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000_000)

    def steady_ms(self) -> int:
        # Unlike CLOCK_MONOTONIC it also counts while the machine is suspended, as leases do.
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def alarm(self) -> SystemAlarm:
        return SystemAlarm(self)


class VirtualAlarm:
    def __init__(self, clock: "VirtualClock") -> None:
        self._clock = clock
        self._waiter: asyncio.Future[None] | None = None
        self._rung = False
        self._closed = False

    async def wait(self, until: Instant | None) -> None:
        if self._rung or (until is not None and until <= self._clock.now()):
            self._rung = False
            return
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._clock.rests(waiter, until)
        try:
            await waiter
        finally:
            if waiter.cancelled():
                # Cancelled while waiting: its owner cleans up and counts as busy until it closes.
                self._clock.works()
        self._rung = False

    async def pause(self, for_ms: int | None) -> None:
        await self.wait(None if for_ms is None else later(self._clock.now(), for_ms))

    def ring(self) -> None:
        if self._waiter is None or self._waiter.done():
            self._rung = True
            return
        self._clock.works()
        self._waiter.set_result(None)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._clock.rests(None, None)


class VirtualClock:
    """A clock that stands still until it is moved. `advance` waits until nobody is busy."""

    def __init__(self, start: Instant = Instant(1_600_000_000_000)) -> None:
        self._now = start
        self._stepped_ms = 0
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._sleepers: list[tuple[Instant, int, asyncio.Future[None]]] = []
        self._order = count()
        self.speed = 0.0
        """The speed at which a `Pacer` moves the clock. 0 means that no pacer moves it."""

    def now(self) -> Instant:
        return self._now

    def steady_ms(self) -> int:
        return self._now - self._stepped_ms

    def alarm(self) -> VirtualAlarm:
        self.works()
        return VirtualAlarm(self)

    async def advance(self, by_ms: int) -> None:
        """Move the clock forward. Each timer fires when the work of the one before is done."""
        await self.advance_to(Instant(self._now + by_ms))

    async def advance_to(self, target: Instant) -> None:
        await self.settle()
        while (sleeper := self._next_sleeper(target)) is not None:
            until, waiter = sleeper
            self._now = max(self._now, until)
            self.works()
            waiter.set_result(None)
            await self.settle()
        self._now = max(self._now, target)

    async def settle(self) -> None:
        """Return when everybody who uses this clock is waiting."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()

    def step(self, by_ms: int) -> None:
        """Set the clock without waking anybody, as when an operator sets a clock wrongly."""
        self._now = Instant(self._now + by_ms)
        self._stepped_ms += by_ms

    def next_ms(self) -> Instant | None:
        """Return the earliest time for which anybody waits, or None if nobody waits."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def works(self) -> None:
        self._busy += 1

    def rests(self, waiter: asyncio.Future[None] | None, until: Instant | None) -> None:
        self._busy -= 1
        if waiter is not None and until is not None:
            heapq.heappush(self._sleepers, (until, next(self._order), waiter))
        if not self._busy:
            self._idle.set()

    def _next_sleeper(self, target: Instant) -> tuple[Instant, asyncio.Future[None]] | None:
        until = self.next_ms()
        if until is None or until > target:
            return None
        _, _, waiter = heapq.heappop(self._sleepers)
        return until, waiter


STRIDE_MS = 20
"""The real time between two moves of a running virtual clock: a person sees no steps."""
SPEED_MAX = 100_000  # At this speed a day passes in a second.


class Pacer:
    """A task that lets a virtual clock run by itself, faster or slower than real time."""

    def __init__(
        self,
        clock: VirtualClock,
        speed: float,
        *,
        seconds: Callable[[], float] = time.monotonic,
        alarm: Alarm | None = None,
    ) -> None:
        self._clock = clock
        self._speed = speed
        self._seconds = seconds
        self._alarm = alarm or SystemClock().alarm()
        self._read_s = seconds()
        self._owed_ms = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._clock.speed = self._speed
        self._read_s = self._seconds()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._clock.speed = 0.0
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def stride(self) -> None:
        """Move the clock by the time since the last call, multiplied by the speed."""
        now_s = self._seconds()
        self._owed_ms += (now_s - self._read_s) * SECOND_MS * self._speed
        self._read_s = now_s
        whole_ms = int(self._owed_ms)
        self._owed_ms -= whole_ms
        await self._clock.advance(whole_ms)

    async def _run(self) -> None:
        while True:
            await self._alarm.pause(STRIDE_MS)
            await self.stride()
