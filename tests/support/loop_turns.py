"""Counts how often the event loop can do other work while something runs."""

import asyncio
from collections.abc import Awaitable


async def turns_beside(work: Awaitable[object]) -> int:
    """Await the work, and return how many turns another task had meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count())
    try:
        await work
    finally:
        counter.cancel()
    return turns
