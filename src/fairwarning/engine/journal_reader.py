"""The journal reader reads the journal, and notices when entries that it has read are gone.

Theory of operation. A healthy store never changes its past. But after a fail-over that lost data,
or when a backup is restored under running nodes, entries that were read are gone, and their
positions may be used again. So the reader asks for each page together with the last entry that it
has read. If the page does not begin with that entry, the past has changed. The reader then searches
the entries that it remembers for the newest one that is still there.
"""

from collections import deque
from typing import NamedTuple

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import kind_of
from fairwarning.engine.protocols import START, DocumentStore, Entry, Position

MARKS_MAX = 100  # A store that steps back seldom loses more.


class Mark(NamedTuple):
    """The part of an entry that tells it from any other entry at the same position."""

    position: Position
    scope_id: ScopeId
    revision: int
    at_ms: Instant
    kind: str


class PastChanged(Exception):
    """Entries that were read are no longer in the store. `lost` has them, oldest first."""

    def __init__(self, common: Mark | None, lost: tuple[Mark, ...]) -> None:
        super().__init__(f"{len(lost)} entries of the journal are gone")
        self.common = common
        """The newest remembered entry that is still there, or None."""
        self.lost = lost


def mark_of(entry: Entry) -> Mark:
    kind = kind_of(entry.transition)
    return Mark(entry.position, entry.scope_id, entry.revision, entry.at_ms, kind)


class JournalReader:
    def __init__(
        self, store: DocumentStore, after: Position = START, *, marks_max: int = MARKS_MAX
    ) -> None:
        self._store = store
        self._after = after
        """The position where the reader begins. It is used until the first entry was passed."""
        self._marks: deque[Mark] = deque(maxlen=marks_max)

    @property
    def last(self) -> Mark | None:
        return self._marks[-1] if self._marks else None

    async def page(self, limit: int) -> list[Entry]:
        """Return the entries after the last passed one. Raises PastChanged or StoreDown."""
        if not self._marks:
            return await self._store.journal(after=self._after, limit=limit)
        last = self._marks[-1]
        page = await self._store.journal(after=last.position, limit=limit + 1, inclusive=True)
        if not page or mark_of(page[0]) != last:
            raise await self._changed()
        return page[1:]

    def passed(self, entry: Entry) -> None:
        """Remember this entry as read, so that the next page begins after it."""
        self._marks.append(mark_of(entry))

    def go_back(self, common: Mark) -> None:
        """Forget the entries after this one, so that the next page begins after it."""
        while self._marks[-1] != common:
            self._marks.pop()

    async def begin_before(self, position: Position, number: int = 1) -> None:
        """Let the next page begin at this position, and mark the `number` entries before it as
        read.
        """
        self._begin(await self._store.history(before=position, limit=number))

    async def begin_at_end(self, number: int) -> None:
        """Let the next page begin at the end, and mark the `number` entries before it as read."""
        self._begin(await self._store.history(limit=number))

    def _begin(self, newest_first: list[Entry]) -> None:
        self._after = START
        self._marks.clear()
        self._marks.extend(mark_of(each) for each in reversed(newest_first))

    async def _changed(self) -> PastChanged:
        """Find the lost entries by binary search, and return the exception that names them."""
        marks = list(self._marks)
        shared, lost = 0, len(marks) - 1
        while shared < lost:
            middle = (shared + lost) // 2
            if await self._has(marks[middle]):
                shared = middle + 1
            else:
                lost = middle
        common = marks[shared - 1] if shared else None
        return PastChanged(common, tuple(marks[shared:]))

    async def _has(self, mark: Mark) -> bool:
        page = await self._store.journal(after=mark.position, limit=1, inclusive=True)
        return bool(page) and mark_of(page[0]) == mark
