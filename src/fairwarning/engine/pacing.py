"""A virtual clock that runs by itself, faster or slower than the real one.

Theory of operation. Many times a second the hands are moved by what has passed meanwhile. They
are moved as `advance` moves them, so every timer on the way fires in order and at its own
instant, however coarse the strides are. Whoever moves the clock by hand besides only makes it
later: strides begin wherever the hands are.
"""

import asyncio
import time
from collections.abc import Callable

from fairwarning.core.instants import SECOND_MS
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.engine.ports import Alarm

STRIDE_MS = 20
"""Of real time."""
SPEED_MAX = 100_000


class Pacer:
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
        """Moves the hands by what has passed since the last time."""
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
