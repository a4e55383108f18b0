"""The embedded store has one file, which one process uses, with one writer.

Theory of operation. No other process writes to the file (`FileLock` in `connection.py`). So the
journal's numbers are in the order of the commits, and a count over a subscription is exact without
a lock. All writes use one connection, and a thread commits them in groups (`writer.py` describes
the steps of one write). Reads use another connection. In WAL mode they see the last commit, and do
not wait for the next one. With `synchronous = FULL`, a loss of power undoes nothing that was
answered.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from fairwarning.common.loop_slices import map_in_slices
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    START,
    Clock,
    Due,
    Entry,
    Fence,
    Moment,
    Position,
    Receipt,
    Record,
    Signal,
    Step,
    StoreDown,
)
from fairwarning.stores import statements
from fairwarning.stores.codec import Row, Stored, encode, entry_of, stored_of
from fairwarning.stores.listeners import GLOBAL_SIGNAL
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.sql_store import SqlStore, plan_transaction
from fairwarning.stores.sqlite.connection import (
    QUERIES,
    FileLock,
    Reader,
    is_missing_its_wal,
    is_truncated,
    mark_in_use,
    mark_unused,
    store_down,
)
from fairwarning.stores.sqlite.schema import migrate
from fairwarning.stores.sqlite.writer import InlineCommits, Writer
from fairwarning.stores.statements import (
    Statement,
    Value,
    delete_record_statement,
    put_record_statement,
    record_put,
    was_deleted,
)
from fairwarning.stores.writes import unknown_scope, writes_of_new

_log = logging.getLogger(__name__)
_SEQ_MAX = 2**63 - 1  # The largest integer of SQLite.

T = TypeVar("T")
Outcome = tuple[T, tuple[Signal, ...]]
"""The result for the caller, and the signals for the listeners."""


class SqliteStore(SqlStore):
    def __init__(
        self, path: str | Path, clock: Clock, inline_commits: InlineCommits | None = None
    ) -> None:
        super().__init__()
        self._path = Path(path)
        self._inline_commits = inline_commits or InlineCommits()
        self._clock = clock
        self._lock = FileLock(self._path.with_name(f"{self._path.name}.lock"))
        self._open: tuple[Writer, Reader] | None = None

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        """Opens the file, creates it and its directory if they are missing, and migrates it. Raises
        StoreInUse if another process uses it, SchemaTooNew, or StoreDown.
        """
        assert self._open is None, "it is open already"
        await asyncio.to_thread(self._prepare)
        self._open = Writer(self._path, self._listeners, self._inline_commits), Reader(self._path)

    async def close(self) -> None:
        """Waits for the writes that have begun, and closes the file. Later calls fail."""
        if self._open is None:
            return
        (writer, reader), self._open = self._open, None
        await writer.stop()
        await reader.stop()
        # If the file was moved or its disk fails, there is nothing to mark.
        with suppress(sqlite3.Error, OSError):
            if self._path.exists():
                await asyncio.to_thread(mark_unused, self._path)
        self._lock.release()

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        planned = [writes_of_new(scope) for scope in scopes]

        def create(connection: sqlite3.Connection) -> Outcome[None]:
            _check_fences(connection, fences)
            execute(
                connection, statements.creation(planned, at_ms=self._clock.now(), by=by, why=why)
            )
            _mark_fences(connection, fences)
            return None, tuple(writes.signal for writes in planned)

        await self._writer.submit(create)

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str = "",
        counting: bool = False,
        skip_busy: bool = False,
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        """Ignores `skip_busy`, because there is only one writer, so no scope is ever busy."""

        def transact(connection: sqlite3.Connection) -> Outcome[Receipt]:
            _check_fences(connection, fences)
            stored = _read_scope(connection, scope_id)
            subscription = stored.scope.roster.subscription
            pending = _count_pending(connection, subscription) if counting else 0
            moment = Moment(now_ms=self._clock.now(), pending_operations=pending)
            plan = plan_transaction(stored, step, moment, by=by, why=why)
            execute(connection, plan.statements)
            _mark_fences(connection, fences)
            return plan.receipt, plan.signals

        return await self._writer.submit(transact, is_small=True)

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        def note(connection: sqlite3.Connection) -> Outcome[None]:
            execute(connection, statements.seen(seen))
            return None, ()

        await self._writer.submit(note)

    async def due(self, limit: int) -> Due:
        def query(connection: sqlite3.Connection) -> Due:
            now = self._clock.now()
            ids = connection.execute(QUERIES["due"], {"now_ms": now, "limit": limit})
            ahead = connection.execute(QUERIES["next_deadline"], {"now_ms": now})
            return Due(
                now_ms=now,
                scope_ids=tuple(id for (id,) in ids),
                next_deadline_ms=ahead.fetchone()[0],
            )

        return await self._reader.read(query)

    async def end(self) -> Position:
        ((seq,),) = await self._rows("journal_end")
        return Position(str(seq))

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        first = int(after or 0) - inclusive
        name = "journal" if scope_id is None else "journal_of_scope"
        found = await self._rows(name, after=first, scope_id=scope_id, limit=limit)
        return await map_in_slices(entry_of, found)

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        last = _SEQ_MAX if before is None else int(before or 0)
        name = "history" if scope_id is None else "history_of_scope"
        if event_id is not None:
            name = "history_of_event"
        found = await self._rows(
            name, before=last, scope_id=scope_id, event_id=event_id, limit=limit
        )
        return await map_in_slices(entry_of, found)

    async def keep(
        self,
        kind: str,
        key: str,
        body: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Record:
        statement = put_record_statement(kind, key, body, expected)

        def put(connection: sqlite3.Connection) -> Outcome[Record]:
            _check_fences(connection, fences)
            record = record_put(statement, rows(connection, statement))
            _mark_fences(connection, fences)
            return record, _append_note(connection, self._clock, note, by, why)

        return await self._writer.submit(put)

    async def drop(
        self,
        kind: str,
        key: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> bool:
        statement = delete_record_statement(kind, key)

        def delete(connection: sqlite3.Connection) -> Outcome[bool]:
            _check_fences(connection, fences)
            was_there = was_deleted(statement, expected, rows(connection, statement))
            _mark_fences(connection, fences)
            written_note = note if was_there else None
            return was_there, _append_note(connection, self._clock, written_note, by, why)

        return await self._writer.submit(delete)

    def _prepare(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
            # The file holds signing keys. SQLite gives its WAL beside it the same permissions.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._refuse_torn_copy()
            migrate(self._path, load_migrations("sqlite"), tell=_log.warning)
            mark_in_use(self._path)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError | sqlite3.Error):
                raise store_down(error, self._path) from error
            raise

    def _refuse_torn_copy(self) -> None:
        """Raises StoreDown if the file is cut off, and warns if its last changes may be missing."""
        if is_truncated(self._path):
            raise StoreDown(
                f"{self._path} is cut off: it has fewer pages than it says, as a copy that was "
                "interrupted; restore a backup with `fairwarning restore`"
            )
        if is_missing_its_wal(self._path):
            _log.warning(
                "%s looks like a copy that was made while a server used it, without %s-wal, so its "
                "last changes may be missing; make copies with `fairwarning backup`",
                self._path,
                self._path.name,
            )

    @property
    def _writer(self) -> Writer:
        return self._parts[0]

    @property
    def _reader(self) -> Reader:
        return self._parts[1]

    @property
    def _parts(self) -> tuple[Writer, Reader]:
        if self._open is None:
            raise StoreDown(f"the store of {self._path} is not open; open it first")
        return self._open

    @staticmethod
    def _listed(words: list[str]) -> str:
        return encode(words)

    async def _rows(self, name: str, **values: Value) -> list[Any]:
        return await self._reader.read(
            lambda connection: connection.execute(QUERIES[name], values).fetchall()
        )


# The parts of a write. Each runs in a transaction that the writer has begun. What may refuse the
# write comes first, because after a later refusal the writer must run the whole batch again.


def _check_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    """Raises FenceBroken if a record is not as its fence expects. It only reads, because a refusal
    after a write makes the writer run the whole batch again.
    """
    if not fences:
        return
    reads = statements.fence_statements([replace(fence, then=None) for fence in fences])
    statements.refuse_broken_fences(
        fences, [row for read in reads for row in rows(connection, read)]
    )


def _mark_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    if not fences:
        return
    for statement in statements.fence_statements(
        [fence for fence in fences if fence.then is not None]
    ):
        rows(connection, statement)


def _read_scope(connection: sqlite3.Connection, scope_id: ScopeId) -> Stored:
    row = connection.execute(QUERIES["read_scope"], {"id": scope_id}).fetchone()
    if row is None:
        raise unknown_scope(scope_id)
    return stored_of(row[:-1], row[-1])


def _count_pending(connection: sqlite3.Connection, subscription: str) -> int:
    row = connection.execute(QUERIES["count_pending"], {"subscription": subscription}).fetchone()
    return int(row[0])


def execute(connection: sqlite3.Connection, writes: Sequence[Statement]) -> None:
    for statement in writes:
        try:
            connection.execute(QUERIES[statement.name], statement.values)
        except sqlite3.IntegrityError as error:
            key = statements.contested_key(statement)
            if key is not None and error.sqlite_errorname == "SQLITE_CONSTRAINT_PRIMARYKEY":
                statements.refuse_taken(statement.name, key)
            raise


def _append_note(
    connection: sqlite3.Connection, clock: Clock, note: Noted | None, by: Actor, why: str
) -> tuple[Signal, ...]:
    """Appends the note to the history, for no scope, and returns the signals to send."""
    if note is None:
        return ()
    execute(connection, [statements.note(note, at_ms=clock.now(), by=by, why=why)])
    return (GLOBAL_SIGNAL,)


def rows(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    return connection.execute(QUERIES[statement.name], statement.values).fetchall()
