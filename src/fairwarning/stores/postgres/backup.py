"""Writes all rows of the database into one file, checks such a file, and puts the rows back.

The file is a zip with the rows of each table as PostgreSQL's COPY writes them, all read in one
transaction, and a manifest. It needs no pg_dump, and may be restored into a newer schema.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from fairwarning.stores.backup_file import BadBackup, Contents, refuse_schema, whole_file
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres.database import connect, conninfo_of
from fairwarning.stores.postgres.errors import explained
from fairwarning.stores.postgres.schema import migrate

FORMAT = "fairwarning-backup-1"
TABLES = ("scopes", "rosters", "events", "addresses", "event_instances", "journal", "records")
"""All tables, in an order in which they can be filled."""
CHUNK_BYTES = 1024 * 1024
_MANIFEST = "manifest.json"


async def save(url: str, target: Path, *, replaces: bool = False) -> Contents:
    """Write the rows of the database to `target`. Nodes go on meanwhile. Raises BadBackup."""
    with whole_file(target, replaces=replaces) as temporary, _explained():
        async with await connect(conninfo_of(url), "limit_schema_wait") as connection:
            await connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            version = await _version(connection)
            refuse_schema("the database", version, len(load_migrations("postgres")))
            columns, counts = {}, {}
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
                for table in TABLES:
                    columns[table] = await _columns(connection, table)
                    counts[table] = await _save_table(connection, archive, table, columns[table])
                manifest = {
                    "format": FORMAT, "schema": version, "columns": columns, "rows": counts,
                }  # fmt: skip
                archive.writestr(_MANIFEST, json.dumps(manifest))
        return verify(temporary)


def verify(path: Path) -> Contents:
    """Check a backup and return what is in it. Raises BadBackup."""
    with _explained(), _opened(path) as archive:
        manifest = _manifest(archive, path)
        refuse_schema(str(path), int(manifest["schema"]), len(load_migrations("postgres")))
        if broken := _broken(archive):
            raise BadBackup(f"{path} is damaged ({broken}); use another copy")
        rows = manifest["rows"]
        return Contents(
            store="postgresql",
            schema=int(manifest["schema"]),
            scopes=rows["scopes"],
            events=rows["events"],
            journal=rows["journal"],
            records=rows["records"],
        )


async def restore(path: Path, url: str, *, replaces: bool = False) -> Contents:
    """Fill the database with the rows of a backup, in one transaction. Raises BadBackup.

    Nodes that run meanwhile notice that the store stepped back. New entries of the journal follow
    the restored ones, because every connection checks that (`continue_journal`).
    """
    contents = verify(path)
    with _explained(), _opened(path) as archive:
        manifest = _manifest(archive, path)
        migrations = load_migrations("postgres")
        # An empty database gets the schema of the backup first, and the rest when it has its rows.
        found = await migrate(conninfo_of(url), migrations[: contents.schema])
        if contents.schema != found.after:
            raise BadBackup(
                f"{path} has schema version {contents.schema} and the database {found.after}; "
                "restore it into an empty database"
            )
        async with await connect(conninfo_of(url), "limit_schema_wait") as connection:
            await connection.execute(b"BEGIN")
            if await _has_rows(connection) and not replaces:
                raise BadBackup("the database is not empty; say --force to replace what is in it")
            tables = [table for table in TABLES if table in manifest["columns"]]
            names = sql.SQL(", ").join(map(sql.Identifier, tables))
            await connection.execute(sql.SQL("TRUNCATE {}").format(names))
            for table in tables:
                await _fill_table(connection, archive, table, manifest["columns"][table])
            await connection.execute(
                b"SELECT setval(pg_get_serial_sequence('journal', 'seq'), "
                b"greatest((SELECT max(seq) FROM journal), 1))"
            )
            await connection.execute(b"COMMIT")
        await migrate(conninfo_of(url), migrations)  # The journal goes on behind its last entry.
    return contents


async def _save_table(
    connection: Any, archive: zipfile.ZipFile, table: str, columns: list[str]
) -> int:
    rows = 0
    query = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table), _listed(columns))
    with archive.open(f"{table}.copy", "w", force_zip64=True) as file:
        async with connection.cursor().copy(query) as copy:
            async for chunk in copy:
                file.write(bytes(chunk))
                rows += bytes(chunk).count(b"\n")
    return rows


async def _fill_table(
    connection: Any, archive: zipfile.ZipFile, table: str, columns: list[str]
) -> None:
    query = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), _listed(columns))
    with archive.open(f"{table}.copy") as file:
        async with connection.cursor().copy(query) as copy:
            while chunk := file.read(CHUNK_BYTES):
                await copy.write(chunk)


def _listed(columns: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


async def _columns(connection: Any, table: str) -> list[str]:
    query = (
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
        "AND NOT attisdropped ORDER BY attnum"
    )
    return [str(name) for (name,) in await (await connection.execute(query, [table])).fetchall()]


async def _version(connection: Any) -> int:
    cursor = await connection.execute(b"SELECT to_regclass('schema_version') IS NOT NULL")
    if not (await cursor.fetchone())[0]:
        return 0
    cursor = await connection.execute(b"SELECT coalesce(max(version), 0) FROM schema_version")
    return int((await cursor.fetchone())[0])


async def _has_rows(connection: Any) -> bool:
    cursor = await connection.execute(
        b"SELECT EXISTS (SELECT FROM scopes) OR EXISTS (SELECT FROM records)"
    )
    return bool((await cursor.fetchone())[0])


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(archive.read(_MANIFEST))
        if found["format"] == FORMAT:
            return dict(found)
    except (KeyError, ValueError, TypeError):
        pass
    raise BadBackup(f"{path} is no backup of fairwarning, or of a newer version; name another file")


def _broken(archive: zipfile.ZipFile) -> str | None:
    """Return the name of a part that is damaged, or None if all are whole."""
    try:
        return archive.testzip()
    except (zlib.error, OSError, EOFError) as problem:
        return str(problem)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as problem:
        raise BadBackup(f"{path} cannot be read as a backup: {problem}; use another copy") from None
    with archive:
        yield archive


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise BadBackup(str(explained(error))) from None
