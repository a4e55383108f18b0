"""Tells an open page that something has changed, so that the page reloads itself.

Changes in quick succession are reported once, because nobody can read a page that keeps reloading.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from fairwarning.operator_api.context import Control

Glance = Callable[[], object]
KEEP_ALIVE_S = 15.0  # Proxies often close a connection that is silent for 30 or 60 seconds.
QUIET_S = 0.03
"""Changes within this time are reported together."""
LOOK_S = 0.5
"""The time between two calls of `glance`, which finds changes without a journal entry."""
_BEGIN = b"retry: 1000\n\n"
_CHANGE = b"event: change\ndata: {}\n\n"
_STILL_HERE = b": still here\n\n"


async def changes(
    control: Control,
    stopping: asyncio.Event,
    may_go_on: Callable[[], Awaitable[bool]],
    glance: Glance | None = None,
) -> AsyncIterator[bytes]:
    """Yield a server-sent event for each change, and comments that keep the connection alive.

    `may_go_on` is called before each of them; the stream ends if it returns False. `glance` returns
    a value that differs after a change without a journal entry, such as a move of the clock.
    """
    changed = asyncio.Event()
    following = asyncio.create_task(_follow(control, changed))
    stop = asyncio.create_task(stopping.wait())
    news: asyncio.Task[bool] | None = None
    seen, quiet_s = glance and glance(), 0.0
    try:
        yield _BEGIN
        while not stop.done():
            news = asyncio.create_task(changed.wait())
            pause_s = LOOK_S if glance else KEEP_ALIVE_S
            await asyncio.wait({news, stop}, timeout=pause_s,
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            news.cancel()
            if changed.is_set() or (glance and glance() != seen):
                await asyncio.sleep(QUIET_S)
                changed.clear()
                seen, quiet_s = glance and glance(), 0.0
                if not await may_go_on():
                    return
                yield _CHANGE
            else:
                quiet_s += pause_s
                if quiet_s >= KEEP_ALIVE_S:
                    quiet_s = 0.0
                    if not await may_go_on():
                        return
                    yield _STILL_HERE
    finally:
        # A client may leave while `news` is awaited, so `news` must be cancelled here too.
        tasks = [each for each in (following, stop, news) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(control: Control, changed: asyncio.Event) -> None:
    entries = control.engine.changes(await control.store.end())
    # Changes between the rendering of the page and now were missed, so report one at once.
    changed.set()
    async with contextlib.aclosing(entries):
        async for _ in entries:
            changed.set()
