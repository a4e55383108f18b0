"""The history, newest first: the journal's entries in the journal's order."""

import asyncio
from collections.abc import Sequence

import pytest

from fairwarning.core.commands import Approve, Cancel, Postpone, Schedule
from fairwarning.core.instants import HOUR_MS, Instant
from fairwarning.core.model import EventType, InstanceName, ScopeId
from fairwarning.core.transitions import Cancelled, Noted, Scheduled
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Entry, Position, Store
from fairwarning.stores.postgres import PostgresStore, database, journal
from fairwarning.stores.postgres.database import Connection, Results
from fairwarning.stores.statements import Statement
from tests.stores.fleet import ME, declare, new_id, submit, web, whole_journal
from tests.stores.nodes import stranger
from tests.stores.postgres.test_journal import append
from tests.stores.steps import changing


def reboot(target: str) -> Schedule:
    return Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(InstanceName(target),))


async def test_it_is_the_journal_backwards(store: Store, clock: VirtualClock) -> None:
    one = await declare(store, web("one"), web("two"))
    for number in range(4):
        await submit(store, one, reboot(f"one-{number}"))
        await submit(store, web("two").id, reboot(f"two-{number}"))
        note = Noted(subject="token:t", action="created")
        await store.keep("token", str(number), "{}", note=note, by=ME)
    entries = await whole_journal(store)
    for scope_id in (None, one, ScopeId("")):
        chosen = [each for each in reversed(entries) if scope_id in {None, each.scope_id}]
        assert len(chosen) >= 4
        before: Position | None = None
        found: list[Entry] = []
        while page := await store.history(before=before, scope_id=scope_id, limit=3):
            assert len(page) <= 3
            found += page
            before = page[-1].position
        assert found == chosen


async def test_the_story_of_one_event(store: Store, clock: VirtualClock) -> None:
    id = await declare(store, web())
    first, other = reboot("web-0"), reboot("web-1")
    for command in (first, other):
        await submit(store, id, command)
    await submit(store, id, Approve(event_id=other.event_id, by=ME))
    later = Instant(clock.now() + HOUR_MS)
    moved = Postpone(event_id=first.event_id, new_event_id=new_id(), not_before_ms=later)
    await submit(store, id, moved)
    await submit(store, id, Cancel(event_id=moved.new_event_id))

    async def story(scope_id: ScopeId | None = None) -> list[Entry]:
        return await store.history(event_id=first.event_id, scope_id=scope_id, limit=10)

    found = await story()
    assert [type(each.transition) for each in found] == [Cancelled, Scheduled]
    entries = await whole_journal(store)
    assert found == [each for each in reversed(entries) if each in found]
    assert await story(id) == found
    assert await story(ScopeId("elsewhere")) == []
    older = await store.history(before=found[0].position, event_id=first.event_id, limit=10)
    assert older == found[1:]
    assert await store.history(event_id=new_id(), limit=10) == []


async def test_a_position_of_nowhere_is_a_mistake(store: Store) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await store.history(before=Position("nowhere"), limit=1)


async def test_an_entry_waits_for_those_that_may_come_before_it(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a reader who pages back from it would never see the one that comes late."""
    id = await declare(postgres, web("quick"), web("slow"))
    settled = await postgres.history(limit=10)
    async with stranger(postgres_dsn) as slow:
        await append(slow, web("slow").id)
        await postgres.transact(id, changing, by=ME)
        with monkeypatch.context() as patch:
            patch.setattr(journal, "HELD_PAUSES_S", ())
            assert await postgres.history(limit=10) == settled
        await slow.leave()
    page = await postgres.history(limit=10)
    assert [(each.scope_id, each.revision) for each in page[:2]] == [(id, 3), (web("slow").id, 99)]
    assert page[2:] == settled


async def test_who_has_just_done_it_finds_it(postgres: PostgresStore, postgres_dsn: str) -> None:
    """Though others are at work, and more come while it waits."""
    id = await declare(postgres, web())
    async with stranger(postgres_dsn) as slow, stranger(postgres_dsn) as slower:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(id, changing, by=ME)
        await slower.execute("BEGIN")
        await slower.execute("SELECT pg_current_xact_id()")
        reading = asyncio.create_task(postgres.history(limit=1))
        async with stranger(postgres_dsn) as onlooker:
            await onlooker.wait_until_looked_back()
        await slow.leave()
        (newest,) = await reading
        assert newest.revision == 3
        await slower.leave()


async def test_who_looks_back_asks_until_it_is_let_go(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(postgres, web())
    asked = 0
    async with stranger(postgres_dsn) as slow:
        await slow.execute("BEGIN")
        await slow.execute("SELECT pg_current_xact_id()")
        await postgres.transact(id, changing, by=ME)

        async def run(connection: Connection, statements: Sequence[Statement]) -> Results:
            nonlocal asked
            found = await database.run(connection, statements)
            asked += "is_let_go" in found
            if asked == 2:
                await slow.leave()
            return found

        monkeypatch.setattr(journal, "run", run)
        (newest,) = await postgres.history(limit=1)
    assert (newest.revision, asked) == (3, 3)
