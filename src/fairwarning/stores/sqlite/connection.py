"""Opens, locks and reads the file, and explains its failures to an operator.

A connection that has failed is closed, which undoes its open transaction. The next use opens a new
one, so an outage ends as soon as its cause ends.
"""

import asyncio
import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.migrations import load_queries

T = TypeVar("T")
QUERIES = load_queries("sqlite")
"""The statements of this dialect by name."""
BUSY_S_MAX = 5.0
"""How long to wait if another program, such as a backup, has locked the file."""
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
    # There is no isolation level, because the writer begins its transactions itself. Two threads
    # may use a connection, but never at once: the event loop commits only while the writer rests.
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
        """Returns the connection, and opens it first if it is not open.

        If another program has locked the file, statements wait up to BUSY_S_MAX, or fail at once if
        `waits` is False. Raises Moved, or another sqlite3.Error if it cannot be opened.
        """
        if self._connection is None:
            # Otherwise SQLite would create a new file without any tables.
            self.refuse_moved()
            self._connection, self._waits = connect(self._path), True
        if self._waits != waits:
            busy_ms = round(BUSY_S_MAX * 1000) if waits else 0
            self._connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
            self._waits = waits
        return self._connection

    def refuse_moved(self) -> None:
        """Raises Moved if the path no longer leads to the file that this object began with."""
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
        # The file or its folder is gone, or the disk does not answer.
        return None
    return found.st_dev, found.st_ino


class Reader:
    """Reads with its own connection and thread, so that no read waits for a commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = LazyConnection(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"reader of {path.name}")

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Runs the query in one transaction and returns its result. Raises StoreDown."""
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
    """Returns whether the file or the disk failed. Other errors are mistakes of the program."""
    ours = sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
    return not isinstance(error, ours | sqlite3.InterfaceError)


def store_down(error: sqlite3.Error | OSError, path: Path) -> StoreDown:
    """Returns a StoreDown that says what failed, and what an operator can do about it."""
    name = getattr(error, "sqlite_errorname", "")
    # SQLITE_IOERR_WRITE is a kind of SQLITE_IOERR.
    kind = "_".join(name.split("_")[:2])
    if isinstance(error, OSError):
        kind = "SQLITE_FULL" if error.errno == errno.ENOSPC else "SQLITE_CANTOPEN"
    advice = _ADVICE.get(kind, f"SQLite says: {error}")
    return StoreDown(f"cannot work on {path}: {advice}")


class StoreInUse(StoreDown):
    """Another process uses the file of the store."""


class FileLock:
    """A locked file beside the store's file. When the process ends, the lock ends too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock without waiting. Raises StoreInUse if another process has it."""
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
        """Releases the lock. The file stays, because another process may have locked it by now."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


MAGIC = b"SQLite format 3\0"
IN_USE = 1
"""The value of `user_version` while a server uses the file. It is 0 after a clean stop."""
_HEADER_BYTES = 100


def is_truncated(path: Path) -> bool:
    """Returns whether the file has fewer pages than its header says, as an interrupted copy has."""
    header = _header(path)
    if not header.startswith(MAGIC):
        return False  # It is empty, or no database at all.
    if len(header) < _HEADER_BYTES:
        return True
    size = int.from_bytes(header[16:18], "big")
    page_bytes = 65_536 if size == 1 else size
    pages = int.from_bytes(header[28:32], "big")
    if header[24:28] != header[92:96]:
        return False  # The number of pages is not kept up to date by the program that wrote it.
    # With a WAL, pages at the end may be in the WAL only.
    return not has_wal(path) and os.path.getsize(path) < pages * page_bytes


def is_missing_its_wal(path: Path) -> bool:
    """Returns whether a server was using the file and its WAL is not beside it.

    A killed server leaves the WAL behind, so this is a copy of the one file alone. It may also be
    that another program has opened and closed the file since, which moves the WAL into it.
    """
    header = _header(path)
    is_in_use = int.from_bytes(header[60:64], "big") == IN_USE
    return len(header) == _HEADER_BYTES and is_in_use and not has_wal(path)


def mark_in_use(path: Path) -> None:
    """Writes into the file itself, not only into its WAL, that a server uses it."""
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {IN_USE}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def mark_unused(path: Path) -> None:
    """Writes that no server uses the file. Closing the last connection empties the WAL."""
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")


def _header(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return b""


def has_wal(path: Path) -> bool:
    return path.with_name(f"{path.name}-wal").exists()
