"""Waits by the service's clock.

Deadlines are the service's, so they are waited for on its clock. Each response says what time it
is there, and everything that waits looks again, so a VM whose own clock is wrong or was stopped
for a while misses nothing.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class TimeIsUp(Exception):
    """The work was ended because it took too long."""


class Clock:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self._changed = asyncio.Event()

    def nudge(self) -> None:
        """Wake everything that waits: the time may have jumped, or something has happened."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, until: datetime | None) -> None:
        """Wait until that time or the next nudge, whichever is first."""
        left_s = None if until is None else (until - self.now()).total_seconds()
        if left_s is not None and left_s <= 0:
            return
        try:
            async with asyncio.timeout(left_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def sleep(self, seconds: float) -> None:
        """Wait that long by either clock: the service's may be set back."""
        until = self.now() + timedelta(seconds=seconds)
        ends_s = time.monotonic() + seconds
        while (left_s := ends_s - time.monotonic()) > 0 and self.now() < until:
            await self.wait(min(until, self.now() + timedelta(seconds=left_s)))

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Run the work for at most that long. Raises TimeIsUp after the work has ended."""
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
    """End the work however this is left, so that nothing goes on in the background."""
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
