"""Migrates the file to the newest schema, after it has saved a copy of it.

One process uses the file, so no node can be harmed. A program that is too old for a file refuses it
at the start, by the same rules as PostgreSQL's.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.backup_file import BadBackup
from fairwarning.stores.migrations import (
    FLOOR_SINCE,
    Migration,
    Report,
    Schema,
    Tell,
    missing_of,
)
from fairwarning.stores.sqlite import backup
from fairwarning.stores.sqlite.connection import QUERIES, connect
from fairwarning.stores.statements import migration_records

PROGRESS_S = 5.0  # A person begins to wonder after this time.
_STEPS_BETWEEN_LOOKS = 100_000  # Some milliseconds of work of SQLite's virtual machine.


def migrate(
    path: Path,
    migrations: Sequence[Migration],
    *,
    tell: Tell = lambda _: None,
    makes_copy: bool = True,
) -> Report:
    """Creates the file if there is none, and migrates it to the newest schema.

    A file with data is first copied, to `copy_of`, unless `makes_copy` is False. Raises StoreDown
    if that fails, SchemaTooNew if a newer version has migrated the file, and sqlite3.Error if a
    migration fails. Then the file stays as the last successful migration left it.
    """
    with closing(connect(path)) as connection:
        schema = _schema(connection)
        missing = missing_of(migrations, schema, str(path))
        if schema.version > len(migrations):
            tell(
                f"{path} has schema {schema.version}, made by fairwarning {schema.program}; this "
                f"version knows up to {len(migrations)}, and goes on"
            )
        if missing and schema.version and makes_copy:
            tell(f"saved {path} as {_saved(path, schema.version)}, before it is migrated")
        seconds = {each.version: _run(connection, each, tell) for each in missing}
        after = _schema(connection).version
    return Report(before=schema.version, after=after, seconds=seconds)


def read_schema(path: Path) -> Schema:
    """Returns the schema of the file, which is Schema() if there is no file. Raises sqlite3.Error
    if it is no database.
    """
    if not path.exists():
        return Schema()
    with closing(backup.open_read_only(path)) as connection:
        return _schema(connection)


def copy_of(path: Path, version: int) -> Path:
    """Returns the name of the copy that is made before a file of this schema is migrated."""
    return path.with_name(f"{path.name}.schema-{version}.backup")


def _saved(path: Path, version: int) -> Path:
    copy = copy_of(path, version)
    try:
        backup.save(path, copy, replaces=True)
    except BadBackup as problem:
        raise StoreDown(
            f"{path} must be migrated, and no copy of it could be saved before that: {problem}; "
            "make room for one, or run `fairwarning migrate --no-backup`"
        ) from problem
    return copy


def _run(connection: sqlite3.Connection, migration: Migration, tell: Tell) -> float:
    """Runs one migration in a transaction, and returns how many seconds it took."""
    began_s = told_s = time.monotonic()

    def look() -> int:
        # SQLite calls this now and then. So Ctrl-C, too, is noticed before the migration is over.
        nonlocal told_s
        now_s = time.monotonic()
        if now_s - told_s >= PROGRESS_S:
            told_s = now_s
            tell(f"{migration.title} has been running for {now_s - began_s:.0f} s")
        return 0

    connection.set_progress_handler(look, _STEPS_BETWEEN_LOOKS)
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{migration.sql}")
        for record in migration_records(migration):
            connection.execute(QUERIES[record.name], record.values)
        connection.execute("COMMIT")
    finally:
        connection.set_progress_handler(None, 0)
    return time.monotonic() - began_s


def _schema(connection: sqlite3.Connection) -> Schema:
    if not connection.execute(QUERIES["has_schema"]).fetchone()[0]:
        return Schema()
    version = int(connection.execute(QUERIES["schema_version"]).fetchone()[0])
    if version < FLOOR_SINCE:
        return Schema(version=version, floor=version)
    version, program, floor = connection.execute(QUERIES["schema_state"]).fetchone()
    return Schema(version=version, floor=floor, program=program or "")
