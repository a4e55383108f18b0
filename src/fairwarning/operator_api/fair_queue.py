"""A queue that shares a few places fairly between callers.

Each caller has a queue of its own, and a free place goes to the caller that was served longest ago.
So a caller with many requests waits behind those with few. Each caller may have only a limited
number under way, so that none takes every place.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CallerQueueFull(Exception):
    """This caller has reached its limit of requests, running and waiting."""


class QueueFull(Exception):
    """All callers together have reached the limit of requests, running and waiting."""


class FairQueue:
    def __init__(
        self, *, at_once: int, caller_at_once: int, caller_max: int, all_max: int | None = None
    ) -> None:
        """Set the limits. `at_once` and `caller_at_once` limit how many requests run at once.

        `caller_max` and `all_max` limit running and waiting requests together.
        """
        self._at_once = at_once
        self._caller_at_once = caller_at_once
        self._caller_max = caller_max
        self._all_max = all_max
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The queue of each caller. The first caller is the one that was served longest ago."""

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place and hold it. Raises CallerQueueFull or QueueFull without waiting."""
        await self._begin(caller)
        try:
            yield
        finally:
            self._end(caller)

    async def _begin(self, caller: str) -> None:
        queue = self._waiting.get(caller, deque())
        if self._running[caller] + len(queue) >= self._caller_max:
            raise CallerQueueFull
        count = self._running.total() + sum(map(len, self._waiting.values()))
        if self._all_max is not None and count >= self._all_max:
            raise QueueFull
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, queue).append(place)
        self._give()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._end(caller)  # It got a place just before it was cancelled.
            else:
                self._leave(caller, place)
            raise

    def _give(self) -> None:
        for caller in list(self._waiting):
            if self._running.total() >= self._at_once:
                return
            if self._running[caller] >= self._caller_at_once:
                continue
            queue = self._waiting.pop(caller)
            # A request that was just cancelled may still be in the queue. It is skipped.
            while queue and queue[0].done():
                queue.popleft()
            if not queue:
                continue
            place = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # It moves to the end, so that the others come first.
            self._running[caller] += 1
            place.set_result(None)

    def _leave(self, caller: str, place: asyncio.Future[None]) -> None:
        queue = self._waiting.get(caller, deque())
        if place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[caller]

    def _end(self, caller: str) -> None:
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self._give()
