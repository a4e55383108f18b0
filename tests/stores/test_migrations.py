"""An older database is brought up to date, and a newer one is left alone."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from fairwarning import __version__
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.stores.migrations import (
    Migration,
    RunningNode,
    WouldHarmNodes,
    load_migrations,
    may_wait,
    refuse_harm,
)
from fairwarning.stores.postgres import PostgresStore, database
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.schema import migrate as migrate_sqlite
from tests.stores.fleet import declare, web, whole_journal

DIALECTS = ["sqlite", "postgres"]
ADDED = "ALTER TABLE scopes ADD COLUMN added integer NOT NULL DEFAULT 7;"


def with_next(dialect: str, sql: str, *, is_contract: bool = False) -> tuple[Migration, ...]:
    known = load_migrations(dialect)
    version = len(known) + 1
    oldest = version if is_contract else None
    return (*known, Migration(version=version, sql=sql, oldest_node=oldest))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_a_gap(dialect: str) -> None:
    numbers = [migration.version for migration in load_migrations(dialect)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_contract_leaves_nodes_of_the_version_before_it_alone(dialect: str) -> None:
    """A floor that only the migration's own version reaches would end all nodes before it."""
    contracts = [each for each in load_migrations(dialect) if each.raises_floor]
    assert all((each.oldest_node or 0) < each.version for each in contracts)


def test_a_node_may_run_before_contracts_and_not_before_what_it_needs() -> None:
    expand = Migration(version=4, sql="")
    contract = Migration(version=5, sql="", oldest_node=4)
    assert may_wait([contract])
    assert not may_wait([expand, contract])
    assert not may_wait([contract, expand])


def test_a_contract_is_refused_with_the_names_of_the_nodes_that_it_harms() -> None:
    def node(name: str, schema: int) -> RunningNode:
        return RunningNode(name=name, host="h", pid=1, program="0.9", schema=schema, seen_s=1)

    contract = Migration(version=6, sql="", name="drop old", oldest_node=4)
    refuse_harm(contract, [node("b", 4), node("c", 5)])
    refuse_harm(Migration(version=6, sql=""), [node("a", 1)])
    says = r"schema 6 \(drop old\) .* 30 s: a \(process 1 on h, fairwarning 0\.9\);"
    with pytest.raises(WouldHarmNodes, match=says):
        refuse_harm(contract, [node("a", 3), node("b", 4)])


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


async def test_a_file_is_copied_before_it_is_migrated(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await declare(sqlite, web())
    await sqlite.close()
    known = load_migrations("sqlite")
    monkeypatch.setattr(
        "fairwarning.stores.sqlite.store.load_migrations", lambda _: with_next("sqlite", ADDED)
    )
    await sqlite.open()
    copy = tmp_path / f"store.db.schema-{len(known)}.backup"
    assert rows(copy, "SELECT max(version) FROM schema_version") == [(len(known),)]
    assert rows(copy, "SELECT id FROM scopes") == [(web().id,)]


async def test_a_file_that_cannot_be_copied_is_not_migrated(
    sqlite: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.close()
    newest = len(load_migrations("sqlite"))
    (tmp_path / f"store.db.schema-{newest}.backup").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(
            "fairwarning.stores.sqlite.store.load_migrations", lambda _: with_next("sqlite", ADDED)
        )
        with pytest.raises(StoreDown, match=r"no copy of it could be saved.*--no-backup"):
            await sqlite.open()
    assert rows(tmp_path / "store.db", "SELECT max(version) FROM schema_version") == [(newest,)]
    await sqlite.open()


async def test_a_file_that_a_newer_version_only_added_to_is_used(
    sqlite: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    id = await declare(sqlite, web())
    await sqlite.close()
    migrate_sqlite(tmp_path / "store.db", with_next("sqlite", ADDED))
    newer = len(load_migrations("sqlite")) + 1
    await sqlite.open()
    assert (await sqlite.read(id)).id == id
    assert f"has schema {newer}, made by fairwarning {__version__}" in caplog.text


async def test_a_file_that_a_newer_version_took_from_is_left_alone(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await sqlite.close()
    migrate_sqlite(tmp_path / "store.db", with_next("sqlite", ADDED, is_contract=True))
    newer = len(load_migrations("sqlite")) + 1
    says = (
        rf"store\.db has schema version {newer}, made by fairwarning {__version__}, .*"
        rf"know schema {newer}; .* upgrade it to {__version__} or newer"
    )
    with pytest.raises(SchemaTooNew, match=says):
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


async def test_a_database_that_a_newer_version_only_added_to_is_used(
    postgres_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    await migrate(conninfo_of(postgres_dsn), with_next("postgres", ADDED))
    store = PostgresStore(postgres_dsn, node="node-1")
    caplog.set_level("INFO")
    await store.open()
    try:
        await declare(store, web())
    finally:
        await store.close()
    newer = len(load_migrations("postgres")) + 1
    assert caplog.text.count(f"the database has schema {newer}, made by") == 1


async def test_a_database_that_a_newer_version_took_from_is_left_alone(postgres_dsn: str) -> None:
    newer = len(load_migrations("postgres")) + 1
    await migrate(conninfo_of(postgres_dsn), with_next("postgres", ADDED, is_contract=True))
    says = (
        rf"database 'test_\d+' has schema version {newer}, made by fairwarning {__version__}, .*"
        rf"know schema {newer}; .*upgrade it to {__version__} or newer"
    )
    with pytest.raises(SchemaTooNew, match=says):
        await PostgresStore(postgres_dsn).open()
