"""The journal as a stream: every entry once, in commit order, from any position on."""

import asyncio
from collections.abc import AsyncGenerator

from fairwarning.engine.ports import START, Entry, Position, Signal, Store, StoreDown

PAGE_ENTRIES_MAX = 500
RECHECK_S = 5.0
OUTAGE_PAUSE_S = 0.5


class Feed:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: set[asyncio.Event] = set()

    def on_signal(self, _: Signal) -> None:
        for wake in self._readers:
            wake.set()

    async def changes(self, after: Position = START) -> AsyncGenerator[Entry, None]:
        """Never ends. An outage of the store pauses it; nothing is skipped."""
        wake = asyncio.Event()
        self._readers.add(wake)
        try:
            while True:
                wake.clear()
                try:
                    page = await self._store.journal(after=after, limit=PAGE_ENTRIES_MAX)
                except StoreDown:
                    await _pause(wake, OUTAGE_PAUSE_S)
                    continue
                for entry in page:
                    yield entry
                    after = entry.position
                if not page:
                    await _pause(wake, RECHECK_S if self._store.is_shared else None)
        finally:
            self._readers.discard(wake)


async def _pause(wake: asyncio.Event, for_s: float | None) -> None:
    try:
        async with asyncio.timeout(for_s):
            await wake.wait()
    except TimeoutError:
        return
