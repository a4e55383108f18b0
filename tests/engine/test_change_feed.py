"""The journal as a stream: nothing is skipped, by outages, lost signals or a store's step back."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.model import Actor, ScopeId
from fairwarning.core.transitions import Activated, Noted
from fairwarning.engine import change_feed as feeds
from fairwarning.engine.change_feed import Feed
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.journal_reader import (
    MARKS_MAX,
    JournalReader,
    Mark,
    PastChanged,
    mark_of,
)
from fairwarning.engine.protocols import START, Entry, Position, Signal
from fairwarning.stores.memory import MemoryStore
from tests.engine.shared_store import SharedStore
from tests.support.patience import HANG_S

ME = Actor(kind="operator", name="me")
_numbers = count(1)


class Journal(SharedStore):
    """A store of notes, each with a text of its own."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())

    async def write(self, *texts: str) -> None:
        for text in texts or ("",):
            self._clock.step(1)  # type: ignore[attr-defined]
            note = Noted(subject="x:y", action="done", detail=text or str(next(_numbers)))
            await self.keep("x", "y", "{}", note=note, by=ME)

    @property
    def texts(self) -> list[str]:
        return [text_of(each) for each in self._entries]


def text_of(entry: Entry) -> str:
    assert isinstance(entry.transition, Noted)
    return entry.transition.detail


class Reading:
    """A reader of the feed that collects what it is told."""

    def __init__(self, changes: AsyncGenerator[Entry, None]) -> None:
        self._changes = changes
        self.told: list[str] = []
        self.position = START

    async def next(self, number: int = 1) -> list[str]:
        found: list[str] = []
        async with asyncio.timeout(HANG_S):
            for _ in range(number):
                entry = await anext(self._changes)
                self.position = entry.position
                found.append(text_of(entry))
        self.told += found
        return found

    async def close(self) -> None:
        await self._changes.aclose()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "RECHECK_S", 0.002)
    monkeypatch.setattr(feeds, "OUTAGE_PAUSE_S", 0.001)


async def test_every_entry_comes_once_from_any_position() -> None:
    store = Journal()
    await store.write("a", "b", "c")
    positions = [START, *(each.position for each in store._entries)]
    for number, position in enumerate(positions[:-1]):
        reading = Reading(Feed(store).changes(position))
        assert await reading.next(3 - number) == ["a", "b", "c"][number:]
        await reading.close()


async def test_a_page_has_as_many_entries_as_were_asked_for() -> None:
    store = Journal()
    await store.write("a", "b", "c", "d")
    reader = JournalReader(store)
    for _ in range(2):
        page = await reader.page(2)
        assert len(page) == 2
        for entry in page:
            reader.passed(entry)


async def test_a_reader_that_begins_at_the_end_of_an_empty_journal_misses_nothing() -> None:
    """Wherever it stood before: positions may be given out again."""
    store = Journal()
    reader = JournalReader(store, Position("7"))
    await reader.begin_at_end(10)
    await store.write("a")
    assert len(await reader.page(10)) == 1


async def test_another_kind_of_entry_at_the_same_place_is_another_entry() -> None:
    store = Journal()
    await store.write("a")
    (entry,) = await store.journal(limit=1)
    other = replace(entry, transition=Activated(at_ms=entry.at_ms))
    assert mark_of(other) != mark_of(entry)


@pytest.mark.parametrize("method", ["journal", "history"])
async def test_an_outage_pauses_it(method: str) -> None:
    store = Journal()
    await store.write("a")
    end = Position("7")  # Beyond what there is, as the end of a journal may be.
    store.down.add(method)
    reading = Reading(Feed(store).changes(end if method == "history" else START))
    if method == "history":
        await store.write("b")
    first = asyncio.create_task(reading.next())
    while store.calls[method] < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert not first.done()
    store.down.clear()
    if method == "history":
        # Where nothing was, it goes on with what comes next.
        while not first.done():
            await store.write("c")
            await asyncio.sleep(0.002)
        assert (await first)[0] == "c"
    else:
        assert await first == ["a"]
        store.down.add("journal")
        second = asyncio.create_task(reading.next())
        await store.write("b")
        await asyncio.sleep(0.01)
        assert not second.done()
        store.down.clear()
        assert await second == ["b"]
    await reading.close()


async def test_signals_may_be_lost_or_come_late_and_twice() -> None:
    store = Journal()
    feed = Feed(store)
    reading = Reading(feed.changes())
    store.signals = []
    store.listen(feed.on_signal)
    await store.write("a")
    assert await reading.next() == ["a"]
    await store.write("b", "c")
    for signal in store.signals * 3:
        feed.on_signal(signal)
    assert await reading.next(2) == ["b", "c"]
    nothing = asyncio.create_task(reading.next())
    for _ in range(20):
        feed.on_signal(Signal(scope_id=ScopeId(""), next_deadline_ms=None))
        await asyncio.sleep(0)
    assert not nothing.done()
    await store.write("d")
    assert await nothing == ["d"]
    await reading.close()
    assert not feed._readers


class SlowJournal(MemoryStore):
    """A store of one node, where nothing looks again; its answers wait for the test."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def journal(self, **named: Any) -> list[Entry]:
        page = await super().journal(**named)
        self.asked.set()
        await self.gate.wait()
        return page


async def test_a_signal_that_comes_while_it_reads_is_not_missed() -> None:
    store = SlowJournal()
    feed = Feed(store)
    store.listen(feed.on_signal)
    reading = Reading(feed.changes())
    first = asyncio.create_task(reading.next())
    await store.asked.wait()
    # The page that is on its way is empty.
    note = Noted(subject="x:y", action="done", detail="late")
    await store.keep("x", "y", "{}", note=note, by=ME)
    store.gate.set()
    assert await first == ["late"]
    await reading.close()


async def test_after_a_step_back_it_goes_on_where_the_pasts_part() -> None:
    store = Journal()
    await store.write("a", "b")
    saved = store.save()
    await store.write("c", "d", "e")
    reading = Reading(Feed(store).changes())
    assert await reading.next(5) == ["a", "b", "c", "d", "e"]
    store.restore(saved)
    await store.write("f")
    assert await reading.next() == ["f"]
    await store.write("g", "h", "i", "j")
    assert await reading.next(4) == ["g", "h", "i", "j"]
    await reading.close()


async def test_it_does_so_even_if_all_is_lost_that_a_reader_remembers() -> None:
    """Somebody who follows all the time remembers more, and is asked."""
    store = Journal()
    await store.write("a", "b")
    common = mark_of(store._entries[-1])
    saved = store.save()
    await store.write(*map(str, range(150)))
    lost = tuple(map(mark_of, store._entries[2:]))
    feed = Feed(store)

    async def check() -> None:
        feed.note_branch(common, lost)

    feed.find_loss = check
    reading = Reading(feed.changes())
    await reading.next(152)
    store.restore(saved)
    await store.write("f", "g")
    assert await reading.next(2) == ["f", "g"]
    again = Reading(feed.changes(lost[-1].position))
    assert await again.next(2) == ["f", "g"], "who comes back with a lost position"
    await reading.close()
    await again.close()


async def test_without_anybody_to_ask_it_goes_on_with_what_comes() -> None:
    """It cannot know what it has missed; but it must not wait for numbers of the lost past."""
    store = Journal()
    await store.write("a", "b")
    saved = store.save()
    await store.write(*map(str, range(150)))
    reading = Reading(Feed(store).changes())
    await reading.next(152)
    store.restore(saved)
    news = asyncio.create_task(reading.next())
    while not news.done():
        await store.write("f")
        await asyncio.sleep(0.002)
    assert await news == ["f"]
    await reading.close()


async def test_without_anybody_to_ask_it_begins_with_the_oldest_place_that_it_remembers() -> None:
    store = Journal()
    await store.write("a", "b")
    saved = store.save()
    await store.write(*map(str, range(150)))
    reading = Reading(Feed(store).changes())
    await reading.next(152)
    store.restore(saved)
    await store.write(*map(str, range(200, 280)))
    unread = store.texts[152 - MARKS_MAX :]
    assert unread
    assert await reading.next(len(unread)) == unread
    await reading.close()


async def test_what_is_remembered_of_lost_positions_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "BRANCHES_MAX", 10)
    feed = Feed(Journal())
    marks = [Mark(Position(str(n)), ScopeId(""), 0, 0, "Noted") for n in range(100)]  # type: ignore[arg-type]
    feed.note_branch(marks[0], tuple(marks[1:]))
    assert list(feed._branches) == [each.position for each in marks[-10:]]


@settings(max_examples=150)
@given(
    shared=st.integers(0, 12),
    lost=st.integers(1, 12),
    new=st.integers(0, 15),
    remembered=st.integers(1, 30),
)
def test_a_reader_finds_the_newest_entry_that_both_pasts_share(
    shared: int, lost: int, new: int, remembered: int
) -> None:
    async def check() -> None:
        store = Journal()
        if shared:
            await store.write(*[""] * shared)
        saved = store.save()
        await store.write(*[""] * lost)
        reader = JournalReader(store, marks_max=remembered)
        for entry in await reader.page(100):
            reader.passed(entry)
        kept = store.texts[-remembered:]
        store.restore(saved)
        await store.write(*[""] * new) if new else None
        with pytest.raises(PastChanged) as caught:
            await reader.page(100)
        change = caught.value
        known = [text for text in store.texts[:shared] if text in kept]
        assert len(change.lost) == min(lost, remembered)
        if not known:
            assert change.common is None
            return
        assert change.common == mark_of(store._entries[shared - 1])
        reader.go_back(change.common)
        assert [text_of(each) for each in await reader.page(100)] == store.texts[shared:]

    asyncio.run(check())
