"""Waits by the service's clock.

The service sets the deadlines, so the agent waits by the service's clock. Each response has the
service's time, and then everything that waits checks the time again. So a VM misses no deadline
even if its own clock is wrong or was stopped.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class TimeIsUp(Exception):
    """The work took longer than it may, and was cancelled."""


class Clock:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self._changed = asyncio.Event()

    def nudge(self) -> None:
        """Wake everything that waits. Call this when the time may have jumped or there is news."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, until: datetime | None) -> None:
        """Wait until the service's clock shows `until`, or until `nudge` is called. None means to
        wait only for `nudge`.
        """
        left_s = None if until is None else (until - self.now()).total_seconds()
        if left_s is not None and left_s <= 0:
            return
        try:
            async with asyncio.timeout(left_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def sleep(self, seconds: float) -> None:
        """Wait until this many seconds have passed, by the service's clock or by the monotonic
        clock.

        The second clock is needed because the service's clock may be set back.
        """
        until = self.now() + timedelta(seconds=seconds)
        ends_s = time.monotonic() + seconds
        while (left_s := ends_s - time.monotonic()) > 0 and self.now() < until:
            await self.wait(min(until, self.now() + timedelta(seconds=left_s)))

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Run the work and return its result. Raises TimeIsUp if it takes longer than `seconds`.

        The work has always ended when this returns or raises.
        """
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise TimeIsUp(f"not done within {seconds:g} s")
        finally:
            await end(task, alarm)


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel the tasks and wait until they have ended. Their exceptions are ignored."""
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
