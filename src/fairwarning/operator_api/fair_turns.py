"""Turns at something scarce, which callers get in rotation.

Theory of operation. Each caller has a queue of its own. Whoever has asked for much waits behind
those who have asked for little: a free turn goes to the caller who was served longest ago. What
one caller may have under way is limited, so that nobody takes every place.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CallerHasTooMany(Exception):
    """This caller has as many as one may have, under way and waiting."""


class AllTaken(Exception):
    """All callers together have as many as there may be."""


class FairTurns:
    def __init__(
        self, *, at_once: int, caller_at_once: int, caller_max: int, all_max: int | None = None
    ) -> None:
        """The last two count those under way and those that wait."""
        self._at_once = at_once
        self._caller_at_once = caller_at_once
        self._caller_max = caller_max
        self._all_max = all_max
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller, the one first who was served longest ago."""

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Raises CallerHasTooMany or AllTaken at once, and otherwise waits."""
        await self._begin(caller)
        try:
            yield
        finally:
            self._end(caller)

    async def _begin(self, caller: str) -> None:
        queue = self._waiting.get(caller, deque())
        if self._running[caller] + len(queue) >= self._caller_max:
            raise CallerHasTooMany
        count = self._running.total() + sum(map(len, self._waiting.values()))
        if self._all_max is not None and count >= self._all_max:
            raise AllTaken
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, queue).append(place)
        self._give()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._end(caller)  # The turn came in the same moment.
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
            # A place whose caller gave up in this moment is still here, and can take no turn.
            while queue and queue[0].done():
                queue.popleft()
            if not queue:
                continue
            place = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # At the end: others come first now.
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
