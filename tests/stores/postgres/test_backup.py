"""A backup of the database has everything, and can be restored into another one."""

from pathlib import Path

import psycopg
import pytest

from fairwarning.core.model import ENGINE
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.stores.backup_file import BadBackup
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.postgres.backup import restore, save, verify
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate, read_schema
from tests.support.postgres import PostgresServer

NOTE = Noted(subject="token:ci", action="created")


async def test_all_rows_come_back_and_the_history_goes_on(
    postgres: PostgresStore, postgres_dsn: str, clock: VirtualClock, tmp_path: Path
) -> None:
    body = 'tab\t, line\n, back\\slash and "quotes"'
    await postgres.keep("test", "a", body, note=NOTE, by=ENGINE)
    file = tmp_path / "backup"
    saved = await save(postgres_dsn, file)
    assert (saved.records, saved.journal) == (1, 1)
    assert verify(file) == saved
    await postgres.keep("test", "b", "{}", note=NOTE, by=ENGINE)
    with pytest.raises(BadBackup, match="--force"):
        await restore(file, postgres_dsn)
    await restore(file, postgres_dsn, replaces=True)
    other = PostgresStore(postgres_dsn, clock)
    await other.open()
    try:
        assert [each.body for each in await other.records("test", limit=9)] == [body]
        await other.keep("test", "c", "{}", note=NOTE, by=ENGINE)
        assert len(await other.journal(limit=9)) == 2
    finally:
        await other.close()


async def test_a_backup_of_an_older_schema_is_restored_into_an_empty_database(
    postgres_server: PostgresServer, bare_postgres_dsn: str, tmp_path: Path
) -> None:
    migrations = load_migrations("postgres")
    await migrate(conninfo_of(bare_postgres_dsn), migrations[:2])
    async with await psycopg.AsyncConnection.connect(bare_postgres_dsn) as connection:
        await connection.execute(b"INSERT INTO records VALUES ('test', 'a', 1, '{}')")
    file = tmp_path / "backup"
    assert (await save(bare_postgres_dsn, file)).schema == 2
    await migrate(conninfo_of(bare_postgres_dsn), migrations)
    with pytest.raises(BadBackup, match="restore it into an empty database"):
        await restore(file, bare_postgres_dsn, replaces=True)
    empty = postgres_server.dsn(postgres_server.create_database())
    await restore(file, empty)
    schema, _ = await read_schema(conninfo_of(empty))
    assert schema.version == len(migrations)
    async with await psycopg.AsyncConnection.connect(empty) as connection:
        found = await connection.execute(b"SELECT kind, key FROM records")
        assert await found.fetchall() == [("test", "a")]


async def test_a_damaged_file_is_refused(
    postgres: PostgresStore, postgres_dsn: str, tmp_path: Path
) -> None:
    await postgres.keep("test", "a", "x" * 1000, by=ENGINE)
    file = tmp_path / "backup"
    await save(postgres_dsn, file)
    content = bytearray(file.read_bytes())
    place = content.index(b"records.copy") + 12 + 20 + 4  # Behind the name and its extra field.
    content[place] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(BadBackup, match="is damaged"):
        verify(file)
    file.write_bytes(b"PK not a zip")
    with pytest.raises(BadBackup, match="use another copy"):
        verify(file)
