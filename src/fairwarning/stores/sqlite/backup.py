"""Copies the file of a store while a server uses it, checks such a copy, and puts it back.

A plain copy of the file lacks what is still in the WAL. SQLite's own backup reads both in one
transaction, and no writer waits for it.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from fairwarning.stores.backup_file import BadBackup, Contents, refuse_schema, whole_file
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.sqlite.connection import (
    QUERIES,
    FileLock,
    StoreInUse,
    has_wal,
    is_missing_its_wal,
    is_truncated,
)

_TABLES = ("scopes", "events", "journal", "records")


def save(source: Path, target: Path, *, replaces: bool = False) -> Contents:
    """Copy the store's file to `target`, whether or not a server uses it. Raises BadBackup."""
    if not source.is_file():
        raise BadBackup(f"there is no store {source}; name it with --store")
    with whole_file(target, replaces=replaces) as temporary, _explained(source):
        with (
            closing(open_read_only(source)) as reading,
            closing(sqlite3.connect(temporary)) as copy,
        ):
            reading.backup(copy)
            # One file without a WAL beside it, which says that no server is using it.
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("PRAGMA user_version = 0")
            copy.commit()
        return verify(temporary)


def verify(path: Path) -> Contents:
    """Check a backup, or the file of a store, and return what is in it. Raises BadBackup."""
    if is_truncated(path):
        raise BadBackup(f"{path} is cut off: it has fewer pages than it says; use another copy")
    with _explained(path), closing(open_read_only(path)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise BadBackup(f"{path} is damaged ({found}); use another copy")
        has_schema = bool(connection.execute(QUERIES["has_schema"]).fetchone()[0])
        version = (
            int(connection.execute(QUERIES["schema_version"]).fetchone()[0]) if has_schema else 0
        )
        refuse_schema(str(path), version, len(load_migrations("sqlite")))
        counts = {name: _count(connection, name) for name in _TABLES if _has(connection, name)}
    warning = ""
    if is_missing_its_wal(path):
        warning = (
            "it was copied while a server used it, without the file -wal beside it, so the last "
            "changes may be missing"
        )
    return Contents(
        store="sqlite", schema=version, warning=warning, **{n: counts.get(n, 0) for n in _TABLES}
    )


def restore(backup: Path, target: Path, *, replaces: bool = False) -> Contents:
    """Make `backup` the file of a store that no server uses. Raises BadBackup."""
    contents = verify(backup)
    if contents.warning and not replaces:
        raise BadBackup(f"{backup}: {contents.warning}; say --force to use it nevertheless")
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.with_name(f"{target.name}.lock"))
    try:
        lock.acquire()
    except StoreInUse as problem:
        raise BadBackup(f"a server uses {target}: {problem}") from None
    try:
        save(backup, target, replaces=replaces)
        for suffix in ("-wal", "-shm"):  # They belong to the file that was replaced.
            target.with_name(target.name + suffix).unlink(missing_ok=True)
    finally:
        lock.release()
    return contents


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open the file without changing anything in it or beside it. Raises sqlite3.Error."""
    # Without a WAL nobody uses the file. SQLite would make a WAL beside it, which would hide that
    # the file was copied alone.
    how = "mode=ro" if has_wal(path) else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(os.fspath(path.absolute()))}?{how}", uri=True)


def _has(connection: sqlite3.Connection, table: str) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(connection.execute(query, (table,)).fetchone()[0])


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BadBackup(f"{path} cannot be read as a store: {error}; use another copy") from None
