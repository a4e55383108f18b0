"""This module reads scopes again that may have changed. Each scope is read by one task at a time.

If a scope is asked for while it is being read, it is read once more, because the running read may
have begun too early. If the store is down, the read is repeated until it succeeds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import StoreDown

READS_AT_ONCE_MAX = 8  # Fewer than the connections to the database, so others get some.
PAUSE_S = 0.2  # Polls may be answered from an old view until the read succeeds.

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Rereads:
    def __init__(self, read: Callable[[ScopeId], Awaitable[None]]) -> None:
        self._read = read
        self._running: dict[ScopeId, asyncio.Task[None]] = {}
        self._since_s: dict[ScopeId, float] = {}
        """When the read that is running, or is being repeated, was asked for."""
        self._again: set[ScopeId] = set()
        """The scopes that were asked for again while they were being read."""
        self._waiting: dict[ScopeId, list[asyncio.Future[None]]] = {}
        """The callers that wait for a read that begins after their call."""
        self._is_closed = False

    def read_soon(self, scope_id: ScopeId) -> None:
        if self._is_closed:
            return
        if scope_id in self._running:
            self._again.add(scope_id)
        else:
            self._since_s[scope_id] = asyncio.get_running_loop().time()
            self._running[scope_id] = asyncio.create_task(self._run(scope_id))

    async def read_now(self, scope_id: ScopeId) -> None:
        """Return when a read that began after this call is over. Raises StoreDown."""
        if self._is_closed:
            raise StoreDown("this node has stopped; ask another")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(scope_id, []).append(done)
        self.read_soon(scope_id)
        await done

    async def read_all(self, scope_ids: Collection[ScopeId]) -> None:
        """Read many scopes as `read_now` does, some at a time."""
        for batch in batches(list(scope_ids)):
            await asyncio.gather(*(self.read_now(scope_id) for scope_id in batch))

    @property
    def oldest_s(self) -> float:
        """The time since which a scope waits to be read. It is infinite if none waits."""
        return min(self._since_s.values(), default=float("inf"))

    async def close(self) -> None:
        self._is_closed = True
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task that was cancelled before its first turn has not answered its callers.
        for waiting in self._waiting.values():
            for each in waiting:
                each.cancel()
        self._waiting.clear()

    async def _run(self, scope_id: ScopeId) -> None:
        waiting: list[asyncio.Future[None]] = []
        try:
            while True:
                self._again.discard(scope_id)
                waiting = self._waiting.pop(scope_id, [])
                try:
                    await self._read(scope_id)
                except Exception as error:
                    if not isinstance(error, StoreDown):
                        _log.exception("could not read %s, trying again", scope_id)
                    answer(waiting, error)
                    await asyncio.sleep(PAUSE_S)
                    continue
                answer(waiting)
                if scope_id not in self._again:
                    return
                self._since_s[scope_id] = asyncio.get_running_loop().time()
        finally:
            # In the same turn as the last check of `_again`, so that no request is lost in between.
            del self._running[scope_id], self._since_s[scope_id]
            for each in waiting + self._waiting.pop(scope_id, []):
                each.cancel()


def answer(waiting: Iterable[asyncio.Future[None]], error: Exception | None = None) -> None:
    """End the wait of these callers. If `error` is given, it is raised in each of them."""
    for each in waiting:
        if each.done():
            continue  # This caller has gone away.
        if error is None:
            each.set_result(None)
        else:
            each.set_exception(error)


def batches(found: Sequence[T]) -> Iterator[Sequence[T]]:
    return (found[n : n + READS_AT_ONCE_MAX] for n in range(0, len(found), READS_AT_ONCE_MAX))
