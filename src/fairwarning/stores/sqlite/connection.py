"""How the file is opened, locked, migrated and read, and what its failures mean to an operator.

The rule: a connection that has failed is not used again. Closing it undoes whatever was
under way, and the next use opens another, so an outage ends as soon as its cause does.
"""

import asyncio
import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.migrations import Migration, load_queries, missing_of

T = TypeVar("T")
QUERIES = load_queries("sqlite")
"""The statements of this dialect by name."""
BUSY_S_MAX = 5.0
"""How long a foreign program, such as a backup, may keep the file locked."""
_ADVICE = {
    "SQLITE_FULL": "the disk is full; free some space, and it goes on by itself",
    "SQLITE_BUSY": "another program keeps it locked; let that end",
    "SQLITE_LOCKED": "another program keeps it locked; let that end",
    "SQLITE_CORRUPT": "it is damaged; restore it from a backup",
    "SQLITE_NOTADB": "it is no database; restore it from a backup, or choose another file",
    "SQLITE_READONLY": "it cannot be written; check its permissions and its disk",
    "SQLITE_CANTOPEN": "it cannot be opened; check its permissions and its directory",
    "SQLITE_PERM": "it cannot be opened; check its permissions and its directory",
    "SQLITE_MOVED": "the file was deleted or replaced while it was in use, and what is written now "
    "would be lost; stop this process, put the file back, and start again",
    "SQLITE_IOERR": "the disk does not read or write; check it",
}


def connect(path: Path) -> sqlite3.Connection:
    # The writer begins transactions by hand, hence no isolation level. One thread at a time uses
    # a connection, but not always the same one: the event loop may commit for the thread.
    connection = sqlite3.connect(
        path, timeout=BUSY_S_MAX, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class Moved(sqlite3.OperationalError):
    """The open file was moved or replaced, which SQLite itself does not report."""

    sqlite_errorname = "SQLITE_MOVED"


class LazyConnection:
    """A connection that is opened when it is first needed, and again after a failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._file = _identity(self._name)
        self._connection: sqlite3.Connection | None = None
        self._waits = True

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def get(self, *, waits: bool = True) -> sqlite3.Connection:
        """Opens the connection if need be. Without `waits`, a foreign lock is an error at once."""
        if self._connection is None:
            # Else SQLite would create a new file without any tables.
            self.refuse_moved()
            self._connection, self._waits = connect(self._path), True
        if self._waits != waits:
            busy_ms = round(BUSY_S_MAX * 1000) if waits else 0
            self._connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
            self._waits = waits
        return self._connection

    def refuse_moved(self) -> None:
        """Raises Moved if the path no longer names the file that is open."""
        if _identity(self._name) != self._file:
            raise Moved

    def discard(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        # It is gone, its folder is no folder any more, or the disk does not answer.
        return None
    return found.st_dev, found.st_ino


class Reader:
    """Reads on a connection and a thread of its own, so that no read waits for a commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = LazyConnection(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"reader of {path.name}")

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Runs the query in one transaction, so that all it sees is of one instant."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, query)

    async def stop(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.discard)
        self._thread.shutdown()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._connection.get()
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._connection.discard()
            raise store_down(error, self._path) from error


def is_outage(error: sqlite3.Error) -> bool:
    """Whether the file or disk failed; a broken constraint or a bad value is our own bug."""
    ours = sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
    return not isinstance(error, ours | sqlite3.InterfaceError)


def store_down(error: sqlite3.Error | OSError, path: Path) -> StoreDown:
    """Explains a failure of the file with what an operator can do about it."""
    name = getattr(error, "sqlite_errorname", "")
    # SQLITE_IOERR_WRITE is a kind of SQLITE_IOERR.
    kind = "_".join(name.split("_")[:2])
    if isinstance(error, OSError):
        kind = "SQLITE_FULL" if error.errno == errno.ENOSPC else "SQLITE_CANTOPEN"
    advice = _ADVICE.get(kind, f"SQLite says: {error}")
    return StoreDown(f"cannot work on {path}: {advice}")


class StoreInUse(StoreDown):
    """Another process uses this file."""


class FileLock:
    """An flock beside the file, so that one process at a time uses it; it ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises StoreInUse without waiting, and OSError if there can be no such file."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreInUse(
                f"process {holder or 'unknown'} holds {self._path}; stop it, or give this one "
                "another file"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Leaves the lock file in place: to remove it could remove another process's lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def migrate(path: Path, migrations: Sequence[Migration]) -> None:
    """Creates the file, or brings it to the newest schema; raises SchemaTooNew.

    A migration that fails leaves the file as the one before it did.
    """
    with closing(connect(path)) as connection:
        for migration in missing_of(migrations, _version(connection), str(path)):
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.sql}\n"
                f"INSERT INTO schema_version (version) VALUES ({migration.version:d});\nCOMMIT;"
            )


def _version(connection: sqlite3.Connection) -> int:
    return _value(connection, "schema_version") if _value(connection, "has_schema") else 0


def _value(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(QUERIES[name]).fetchone()[0])
