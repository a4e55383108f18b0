"""The service's time, to wait by.

Deadlines are the service's, so they are waited for on its clock. Each of its answers says how
late it is there; whoever waits looks again then, so a VM whose own clock is wrong or was
stopped for a while misses nothing.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class TimeIsUp(Exception):
    """It was ended, because it took longer than it may."""


class Clock:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self._changed = asyncio.Event()

    def nudge(self) -> None:
        """The time may have jumped, or something has happened: everybody looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, until: datetime | None) -> None:
        """Until then or until the next nudge, whichever is first."""
        left_s = None if until is None else (until - self.now()).total_seconds()
        if left_s is not None and left_s <= 0:
            return
        try:
            async with asyncio.timeout(left_s):
                await self._changed.wait()
        except TimeoutError:
            return

    async def sleep(self, seconds: float) -> None:
        """At most so long by our own measure too: the service's clock may be set back."""
        until = self.now() + timedelta(seconds=seconds)
        ends_s = time.monotonic() + seconds
        while (left_s := ends_s - time.monotonic()) > 0 and self.now() < until:
            await self.wait(min(until, self.now() + timedelta(seconds=left_s)))

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """Raises TimeIsUp, after the work has ended."""
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
    """However it comes that we leave, nothing goes on behind our back."""
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
