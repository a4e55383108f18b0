"""An older database is brought up to date, and a newer one is left alone."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.migrations import Migration, SchemaTooNew, load_migrations
from fairwarning.stores.postgres import PostgresStore, database
from fairwarning.stores.sqlite import SqliteStore
from tests.stores.fleet import declare, web, whole_journal

DIALECTS = ["sqlite", "postgres"]
ADDED = "ALTER TABLE scopes ADD COLUMN added integer NOT NULL DEFAULT 7;"


def with_next(dialect: str, sql: str) -> tuple[Migration, ...]:
    known = load_migrations(dialect)
    return (*known, Migration(version=len(known) + 1, sql=sql))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_a_gap(dialect: str) -> None:
    numbers = [migration.version for migration in load_migrations(dialect)]
    assert numbers == list(range(1, len(numbers) + 1))


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def test_an_older_file_is_migrated_with_all_that_is_in_it(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(sqlite, web())
    before = await sqlite.read(id), await whole_journal(sqlite)
    await sqlite.close()
    migrations = with_next("sqlite", ADDED)
    monkeypatch.setattr("fairwarning.stores.sqlite.store.load_migrations", lambda _: migrations)
    for _ in range(2):
        await sqlite.open()
        assert (await sqlite.read(id), await whole_journal(sqlite)) == before
        await sqlite.close()
    assert rows(tmp_path / "store.db", "SELECT added FROM scopes") == [(7,)]
    versions = rows(tmp_path / "store.db", "SELECT version FROM schema_version ORDER BY version")
    assert versions == [(each.version,) for each in migrations]
    await sqlite.open()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await declare(sqlite, web())
    await sqlite.close()
    schema = rows(tmp_path / "store.db", "SELECT sql FROM sqlite_master")
    broken = with_next("sqlite", f"{ADDED} SELECT nonsense;")
    with monkeypatch.context() as patch:
        patch.setattr("fairwarning.stores.sqlite.store.load_migrations", lambda _: broken)
        with pytest.raises(StoreDown):
            await sqlite.open()
    assert rows(tmp_path / "store.db", "SELECT sql FROM sqlite_master") == schema
    await sqlite.open()


async def test_a_newer_file_is_left_alone(sqlite: SqliteStore, tmp_path: Path) -> None:
    await sqlite.close()
    newer = len(load_migrations("sqlite")) + 1
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute(f"INSERT INTO schema_version (version) VALUES ({newer})")
        connection.commit()
    with pytest.raises(SchemaTooNew, match=rf"store\.db has schema version {newer} .*upgrade"):
        await sqlite.open()
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute(f"DELETE FROM schema_version WHERE version = {newer}")
        connection.commit()
    await sqlite.open()


async def fetch(dsn: str, query: bytes) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(query)
        return await cursor.fetchall() if cursor.description else []


async def test_nodes_that_start_at_once_migrate_once(bare_postgres_dsn: str) -> None:
    nodes = [PostgresStore(bare_postgres_dsn) for _ in range(8)]
    try:
        await asyncio.gather(*(node.open() for node in nodes))
        await declare(nodes[0], web())
        assert await nodes[-1].scope_ids(limit=10) == [web().id]
    finally:
        await asyncio.gather(*(node.close() for node in nodes))
    versions = await fetch(bare_postgres_dsn, b"SELECT version FROM schema_version")
    assert versions == [(each.version,) for each in load_migrations("postgres")]


async def test_an_older_database_is_migrated_with_all_that_is_in_it(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(postgres, web())
    before = await postgres.read(id), await whole_journal(postgres)
    await postgres.close()
    migrations = with_next("postgres", ADDED)
    monkeypatch.setattr("fairwarning.stores.postgres.store.load_migrations", lambda _: migrations)
    await postgres.open()
    assert (await postgres.read(id), await whole_journal(postgres)) == before
    assert await fetch(postgres_dsn, b"SELECT added FROM scopes") == [(7,)]


@pytest.mark.parametrize("how", ["a statement", "its number"])
async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    postgres_dsn: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    store = PostgresStore(postgres_dsn, clock)
    broken = with_next("postgres", ADDED if how == "its number" else f"{ADDED} SELECT nonsense;")
    with monkeypatch.context() as patch:
        patch.setattr("fairwarning.stores.postgres.store.load_migrations", lambda _: broken)
        if how == "its number":
            patch.setitem(database.QUERIES, "record_version", b"SELECT nonsense")
        with pytest.raises(StoreDown, match="SQLSTATE 42703"):
            await store.open()
    columns = b"SELECT 1 FROM information_schema.columns WHERE column_name = 'added'"
    assert await fetch(postgres_dsn, columns) == []
    await store.open()
    await store.close()


async def test_a_newer_database_is_left_alone(postgres_dsn: str) -> None:
    newer = len(load_migrations("postgres")) + 1
    await fetch(postgres_dsn, b"INSERT INTO schema_version (version) VALUES (%d)" % newer)
    says = rf"database 'test_\d+' has schema version {newer} .*upgrade"
    with pytest.raises(SchemaTooNew, match=says):
        await PostgresStore(postgres_dsn).open()
