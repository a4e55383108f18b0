"""From the first schema, with data in it, to the one with records and lists of events."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairwarning.core.commands import Approve, Cancel, ReportDone, Schedule
from fairwarning.core.model import EventType, InstanceName, Phase
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Choice, Entry, Store
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate as migrate_postgres
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.schema import migrate as migrate_sqlite
from tests.stores.fleet import ME, declare, new_id, submit, web, whole_journal

REBOOT = Schedule(
    event_id=new_id(),
    type=EventType.REBOOT,
    targets=(InstanceName("web-0"), InstanceName("web-2")),
    description='nul \0\0 and \\u0000 and \\\0 and "quotes" ]}',
)
FREEZE = Schedule(event_id=new_id(), type=EventType.FREEZE, targets=(InstanceName("web-1"),))
_TABLES = {
    "scopes": (
        "id", "subscription", "revision", "incarnation", "activated_ms", "last_seen_ms",
        "next_deadline_ms", "pending_operations", "events",
    ),
    "rosters": ("scope_id", "body"),
    "events": ("id", "scope_id", "type", "source", "phase", "created_ms", "ended_ms", "body"),
    "addresses": ("address", "scope_id", "instance"),
    "journal": (
        "scope_id", "revision", "at_ms", "actor_kind", "actor_name", "why", "kind", "body"
    ),
}  # fmt: skip


async def a_life(store: Store) -> None:
    id = await declare(store, web())
    await submit(store, id, REBOOT)
    await submit(store, id, FREEZE)
    await submit(store, id, Approve(event_id=REBOOT.event_id, by=ME))
    await submit(store, id, Cancel(event_id=FREEZE.event_id))


async def rows_of_a_life(path: Path, clock: VirtualClock) -> dict[str, list[tuple[Any, ...]]]:
    """The first schema's rows, which today's differ from in nothing but what was added."""
    store = SqliteStore(path, clock)
    await store.open()
    await a_life(store)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            for table, columns in _TABLES.items()
        }


def insert(table: str, mark: str) -> str:
    columns = _TABLES[table]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"


@pytest.fixture(params=["sqlite", "postgres"])
async def older(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Store:
    """A store whose database was left by the first version."""
    rows = await rows_of_a_life(tmp_path / "life.db", clock)
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        migrate_sqlite(path, load_migrations("sqlite")[:1])
        with closing(sqlite3.connect(path)) as connection:
            for table, values in rows.items():
                connection.executemany(insert(table, "?"), values)
            connection.commit()
        return SqliteStore(path, clock)
    dsn = await asyncio.to_thread(request.getfixturevalue, "bare_postgres_dsn")
    await migrate_postgres(conninfo_of(dsn), load_migrations("postgres")[:1])
    with psycopg.connect(dsn) as database:
        for table, values in rows.items():
            database.cursor().executemany(insert(table, "%s").encode(), values)
    return PostgresStore(dsn, clock)


async def contents(store: Store) -> list[tuple[Any, ...]]:
    def without_position(entries: list[Entry]) -> list[tuple[Any, ...]]:
        return [(e.scope_id, e.revision, e.at_ms, e.by, e.why, e.transition) for e in entries]

    stories = [await store.history(event_id=c.event_id, limit=10) for c in (REBOOT, FREEZE)]
    choices = [
        Choice(),
        Choice(types=(EventType.FREEZE,)),
        Choice(scope_id=web().id),
        *(Choice(instance=InstanceName(f"web-{number}")) for number in range(4)),
    ]
    return [
        tuple(await store.scopes(limit=10)),
        tuple(without_position(await whole_journal(store))),
        tuple(without_position(await store.history(scope_id=web().id, limit=100))),
        *(tuple(without_position(story)) for story in stories),
        *[tuple(await store.events(choice, limit=10)) for choice in choices],
        tuple(sorted((await store.count_events()).items())),
    ]


async def test_an_older_database_answers_like_a_new_one(older: Store, clock: VirtualClock) -> None:
    new = MemoryStore(clock)
    await a_life(new)
    expected = await contents(new)
    assert [len(each) for each in expected[3:7]] == [3, 2, 2, 1]
    await older.open()
    try:
        assert await contents(older) == expected
        await submit(older, web().id, ReportDone(event_id=REBOOT.event_id))
        (completed, *_) = await older.history(event_id=REBOOT.event_id, limit=10)
        note = Noted(subject="token:t", action="created")
        await older.keep("token", "t", "{}", note=note, by=ME)
        assert completed in await older.history(limit=3)
        named = Choice(instance=InstanceName("web-2"), phases=(Phase.COMPLETED,))
        assert [event.id for _, event in await older.events(named, limit=9)] == [REBOOT.event_id]
    finally:
        await older.close()


async def test_a_damaged_body_does_not_keep_a_file_from_its_new_schema(
    tmp_path: Path, clock: VirtualClock
) -> None:
    rows = await rows_of_a_life(tmp_path / "life.db", clock)
    path = tmp_path / "store.db"
    migrate_sqlite(path, load_migrations("sqlite")[:1])
    with closing(sqlite3.connect(path)) as connection:
        for table, values in rows.items():
            connection.executemany(insert(table, "?"), values)
        connection.execute("UPDATE events SET body = '{' WHERE id = ?", (FREEZE.event_id,))
        connection.execute("UPDATE journal SET body = '{' WHERE kind = 'Cancelled'")
        connection.commit()
    store = SqliteStore(path, clock)
    await store.open()
    found = await store.events(Choice(instance=InstanceName("web-0")), limit=10)
    assert [event.id for _, event in found] == [REBOOT.event_id]
    assert (await store.read(web().id)).revision == 6
    await store.close()
