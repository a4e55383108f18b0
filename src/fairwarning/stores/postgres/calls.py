"""Calls that their caller can leave, but not interrupt.

A commit that nobody waits for any more still has to be told to the listeners. And before
Python 3.12 psycopg can lose a cancellation (in `asyncio.wait_for`), which would leave a
caller who was told to stop going on for ever; here it is the wait that is cancelled.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Calls:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        await asyncio.gather(*self._running, return_exceptions=True)
