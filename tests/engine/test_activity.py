"""Notes of who asked: written now and then, and not lost to an outage or to who asks meanwhile."""

import asyncio

import pytest

from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.limits import DEFAULT_TIMING
from fairwarning.engine.activity import SeenNotes
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.scope_view import View
from tests.engine.harness import Rig
from tests.engine.shared_store import SharedStore

EVERY_MS = DEFAULT_TIMING.idle_grace_ms // 3


class Noting:
    """A shown scope, and notes that the test writes by hand."""

    def __init__(self, rig: Rig, store: SharedStore, view: View, notes: SeenNotes) -> None:
        self.rig = rig
        self.store = store
        self.view = view
        self.notes = notes

    def is_asked(self) -> bool:
        return self.view.is_asked

    async def seen(self) -> int:
        found = (await self.store.read(self.view.scope_id)).last_seen_ms
        assert found is not None
        return found


async def noting() -> Noting:
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    await rig.declare(engine)
    views = await engine.show()
    (member,) = views.by_name("web-0")
    await engine.stop()
    notes = SeenNotes(store, clock, views, DEFAULT_TIMING)
    return Noting(rig, store, member.view, notes)


@pytest.mark.parametrize("method", ["due", "note_seen"])
@pytest.mark.parametrize("kind", ["down", "broken"])
async def test_an_outage_loses_no_note(method: str, kind: str) -> None:
    rig = await noting()
    rig.view.is_asked = True
    task = rig.notes.start()
    failing = getattr(rig.store, kind)
    failing.add(method)
    await rig.rig.clock.advance(3 * EVERY_MS)
    assert rig.store.calls[method] >= 3
    assert rig.is_asked()
    failing.clear()
    await rig.rig.clock.advance(EVERY_MS)
    assert await rig.seen() == rig.rig.clock.now()
    assert not rig.is_asked()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_who_asks_while_it_is_written_is_noted_the_next_time() -> None:
    rig = await noting()
    rig.view.is_asked = True
    writing = asyncio.create_task(rig.notes.write())
    while not rig.store.calls["note_seen"]:  # noqa: ASYNC110
        await asyncio.sleep(0)
    rig.view.is_asked = True
    await writing
    assert rig.is_asked()
    rig.rig.clock.step(MINUTE_MS)
    await rig.notes.write()
    assert await rig.seen() == rig.rig.clock.now()


async def test_who_is_waiting_counts_as_asking() -> None:
    rig = await noting()
    rig.view.listen(lambda: None)
    rig.rig.clock.step(HOUR_MS)
    await rig.notes.write()
    assert await rig.seen() == rig.rig.clock.now()


async def test_a_write_that_is_cut_off_is_made_again() -> None:
    rig = await noting()
    rig.view.is_asked = True
    writing = asyncio.create_task(rig.notes.write())
    while not rig.store.calls["note_seen"]:  # noqa: ASYNC110
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert rig.is_asked()


async def test_the_last_notes_are_repeated_and_older_ones_are_not() -> None:
    rig = await noting()
    rig.view.is_asked = True
    await rig.notes.write()
    rig.notes.repeat()
    assert rig.is_asked()
    await rig.notes.write()
    await rig.notes.write()
    rig.notes.repeat()
    assert not rig.is_asked(), "it was not asked in the last interval"


async def test_a_scope_that_is_switched_off_is_not_noted() -> None:
    rig = await noting()
    rig.view.is_asked, rig.view.activated_ms = True, None
    await rig.notes.write()
    assert not rig.store.calls["note_seen"]


async def test_notes_that_may_be_lost_are_written_again_without_waiting() -> None:
    rig = await noting()
    rig.view.is_asked = True
    task = rig.notes.start()
    await rig.rig.clock.advance(EVERY_MS)
    assert rig.store.calls["note_seen"] == 1
    rig.notes.repeat()
    await rig.rig.clock.settle()
    assert rig.store.calls["note_seen"] == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
