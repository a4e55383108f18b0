"""The change feed is the journal as a stream. It gives each entry once, in commit order, from any
position on.

If the store has lost a part of its past, a reader continues after the newest entry that is still
there. It gets everything that has been committed since. Entries that it got and that are lost are
not taken back.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager

from fairwarning.engine.journal_reader import MARKS_MAX, JournalReader, Mark, PastChanged
from fairwarning.engine.protocols import START, Entry, Position, Signal, Store, StoreDown

PAGE_ENTRIES_MAX = 500  # A page must be decoded quickly, because polls wait meanwhile.
RECHECK_S = 2.0  # How late a reader may be if a signal was lost.
OUTAGE_PAUSE_S = 0.5  # Short enough to go on soon after an outage, and no busy loop.
BRANCHES_MAX = 20_000  # Twice what a follower remembers; older ones are not asked for.


class Feed:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: dict[asyncio.Event, None] = {}
        """The readers to wake, in this order. A set would have a different order in each run."""
        self._branches: dict[Position, Position] = {}
        """For each lost position, the newest entry before it that is not lost."""
        self.find_loss: Callable[[], Awaitable[None]] | None = None
        """A function that finds lost entries. None if this node does not follow the journal."""

    def on_signal(self, _: Signal) -> None:
        for wake in self._readers:
            wake.set()

    @contextmanager
    def waking(self) -> Iterator[asyncio.Event]:
        """Create an asyncio event that is set at each signal of the store, until the block ends."""
        wake = asyncio.Event()
        self._readers[wake] = None
        try:
            yield wake
        finally:
            self._readers.pop(wake)

    async def changes(self, after: Position = START) -> AsyncGenerator[Entry, None]:
        """Yield all entries after `after`, without end. While the store is down it waits."""
        reader: JournalReader | None = None
        is_lost = False
        """Whether the entry at `after` is known to be lost."""
        with self.waking() as wake:
            while True:
                wake.clear()
                try:
                    if reader is None:
                        reader = await self._reader_at(after, is_lost=is_lost)
                    page = await reader.page(PAGE_ENTRIES_MAX)
                except PastChanged as change:
                    assert reader is not None
                    if change.common is None:
                        after, reader, is_lost = change.lost[0].position, None, True
                    else:
                        reader.go_back(change.common)
                    continue
                except StoreDown:
                    await pause(wake, OUTAGE_PAUSE_S)
                    continue
                for entry in page:
                    yield entry
                    reader.passed(entry)
                if not page:
                    await pause(wake, RECHECK_S if self._store.is_shared else None)

    def note_branch(self, common: Mark, lost: tuple[Mark, ...]) -> None:
        """Note that the entries `lost` are gone, so readers of them continue after `common`."""
        for mark in lost:
            self._branches[mark.position] = common.position
        while len(self._branches) > BRANCHES_MAX:
            del self._branches[next(iter(self._branches))]

    async def _reader_at(self, position: Position, *, is_lost: bool = False) -> JournalReader:
        """Return a reader that continues after this position, or the nearest that is not lost."""
        reader = JournalReader(self._store)
        if position == START:
            return reader
        if not is_lost:
            position = self._branches.get(position, position)
            found = await self._store.journal(after=position, limit=1, inclusive=True)
            if found and found[0].position == position:
                # Remember some entries before it too, in case they are lost as well.
                await reader.begin_before(position, MARKS_MAX)
                reader.passed(found[0])
                return reader
        # The position was the end of the journal once, or its entry is lost. Another entry may have
        # the position by now, so `find_loss` must find the newest entry that is not lost.
        if self.find_loss is not None:
            await self.find_loss()
        if position in self._branches:
            return await self._reader_at(self._branches[position])
        await reader.begin_before(position)
        return reader


async def pause(wake: asyncio.Event, for_s: float | None) -> None:
    try:
        async with asyncio.timeout(for_s):
            await wake.wait()
    except TimeoutError:
        return
