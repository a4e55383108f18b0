"""The embedded store: one file, one process, one writer.

Theory of operation. The file is ours alone (`lock.py`), so the journal's numbers follow the
commits, and a count over a subscription is exact without a lock. All writes go through one
connection, and a thread commits them in groups (`writer.py`); reads have a connection of
their own, and in WAL mode see the last commit without waiting for the next. `synchronous =
FULL` makes an answer durable against a loss of power.
"""

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    EventType,
    InstanceName,
    Phase,
    Scope,
    ScopeId,
)
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    START,
    Choice,
    Clock,
    Due,
    Entry,
    Fence,
    Listener,
    Mark,
    Moment,
    Position,
    Receipt,
    Record,
    Signal,
    Step,
    StoreDown,
)
from fairwarning.stores import statements
from fairwarning.stores.codec import encode
from fairwarning.stores.event_queries import counts_of, page_of
from fairwarning.stores.listeners import OUTSIDE_SIGNAL, Listeners
from fairwarning.stores.records import (
    dropped,
    dropping,
    fencing,
    keeping,
    kept,
    refuse_broken,
)
from fairwarning.stores.rows import (
    Row,
    Stored,
    entry_of,
    event_of,
    record_of,
    scope_of,
    stored_of,
)
from fairwarning.stores.sql_files import load_migrations
from fairwarning.stores.sqlite.connection import (
    QUERIES,
    FileLock,
    Reader,
    migrate,
    store_down,
)
from fairwarning.stores.sqlite.writer import Pace, Writer
from fairwarning.stores.statements import Statement
from fairwarning.stores.transaction import signal_of, take_turn
from fairwarning.stores.writes import unknown_event, unknown_scope, writes_of_new

_SEQ_MAX = 2**63 - 1


class SqliteStore:
    def __init__(self, path: str | Path, clock: Clock, pace: Pace | None = None) -> None:
        self._path = Path(path)
        self._pace = pace or Pace()
        self._clock = clock
        self._listeners = Listeners()
        self._lock = FileLock(self._path.with_name(f"{self._path.name}.lock"))
        self._open: tuple[Writer, Reader] | None = None

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        """Makes the file and its directory if need be. Raises StoreInUse or SchemaTooNew."""
        assert self._open is None, "it is open already"
        await asyncio.to_thread(self._prepare)
        self._open = Writer(self._path, self._listeners, self._pace), Reader(self._path)

    async def close(self) -> None:
        """Finishes what was asked before; what is asked after fails."""
        if self._open is None:
            return
        (writer, reader), self._open = self._open, None
        await writer.stop()
        await reader.stop()
        self._lock.release()

    def listen(self, listener: Listener) -> None:
        self._listeners.add(listener)

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        planned = [writes_of_new(scope) for scope in scopes]

        def work(connection: sqlite3.Connection) -> tuple[None, tuple[Signal, ...]]:
            _pass(connection, fences)
            now = self._clock.now()
            _execute(connection, statements.creation(planned, at_ms=now, by=by, why=why))
            _mark(connection, fences)
            return None, tuple(signal_of(writes) for writes in planned)

        await self._writer.submit(work)

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
        """Nobody else writes, so no scope is ever busy."""

        def work(connection: sqlite3.Connection) -> tuple[Receipt, tuple[Signal, ...]]:
            _pass(connection, fences)
            stored = _load(connection, scope_id)
            subscription = stored.scope.roster.subscription
            pending = _count(connection, subscription) if counting else 0
            moment = Moment(now_ms=self._clock.now(), pending_operations=pending)
            turn = take_turn(stored, step, moment, by=by, why=why)
            _execute(connection, turn.statements)
            _mark(connection, fences)
            return turn.receipt, turn.signals

        return await self._writer.submit(work, is_small=True)

    async def read(self, scope_id: ScopeId) -> Scope:
        row = await self._one("read_scope", id=scope_id)
        if row is None:
            raise unknown_scope(scope_id)
        return scope_of(row)

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        return [id for (id,) in await self._all("scope_ids", after=after or "", limit=limit)]

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        rows = await self._all("scopes", after=after or "", limit=limit)
        return [scope_of(row) for row in rows]

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        row = await self._one("find_event", id=event_id)
        if row is None:
            raise unknown_event(event_id)
        return event_of(row)

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        row = await self._one("locate", address=address)
        return None if row is None else (row[0], row[1])

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        def work(connection: sqlite3.Connection) -> tuple[None, tuple[Signal, ...]]:
            _execute(connection, statements.seen(seen))
            return None, ()

        await self._writer.submit(work)

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
        row = await self._one("journal_end")
        assert row is not None
        return Position(str(row[0]))

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
        rows = await self._all(name, after=first, scope_id=scope_id, limit=limit)
        return [entry_of(row) for row in rows]

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
        rows = await self._all(name, before=last, scope_id=scope_id, event_id=event_id, limit=limit)
        return [entry_of(row) for row in rows]

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        page = page_of(choice, before, limit, encode)
        return [event_of(row) for row in await self._all(page.name, **page.values)]

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        return counts_of(await self._all("count_events"))

    async def record(self, kind: str, key: str) -> Record | None:
        row = await self._one("record", kind=kind, key=key)
        return None if row is None else record_of(row)

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        rows = await self._all("records", kind=kind, after=after, until=until, limit=limit)
        return [record_of(row) for row in rows]

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
        asked = keeping(kind, key, body, expected)

        def work(connection: sqlite3.Connection) -> tuple[Record, tuple[Signal, ...]]:
            _pass(connection, fences)
            record = kept(asked, _rows(connection, asked))
            _mark(connection, fences)
            return record, self._note(connection, note, by, why)

        return await self._writer.submit(work)

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
        asked = dropping(kind, key)

        def work(connection: sqlite3.Connection) -> tuple[bool, tuple[Signal, ...]]:
            _pass(connection, fences)
            was_there = dropped(asked, expected, _rows(connection, asked))
            _mark(connection, fences)
            return was_there, self._note(connection, note if was_there else None, by, why)

        return await self._writer.submit(work)

    def _note(
        self, connection: sqlite3.Connection, note: Noted | None, by: Actor, why: str
    ) -> tuple[Signal, ...]:
        """The signals that tell of it."""
        if note is None:
            return ()
        _execute(connection, [statements.note(note, at_ms=self._clock.now(), by=by, why=why)])
        return (OUTSIDE_SIGNAL,)

    def _prepare(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
            # Signing keys are in it. What SQLite puts beside it gets the same permissions.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            migrate(self._path, load_migrations("sqlite"))
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError | sqlite3.Error):
                raise store_down(error, self._path) from error
            raise

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

    async def _one(self, name: str, **values: str) -> Row | None:
        rows = await self._all(name, **values)
        return rows[0] if rows else None

    async def _all(self, name: str, **values: str | int | None) -> list[Any]:
        return await self._reader.read(
            lambda connection: connection.execute(QUERIES[name], values).fetchall()
        )


def _load(connection: sqlite3.Connection, scope_id: ScopeId) -> Stored:
    row = connection.execute(QUERIES["read_scope"], {"id": scope_id}).fetchone()
    if row is None:
        raise unknown_scope(scope_id)
    return stored_of(row[:-1], row[-1])


def _count(connection: sqlite3.Connection, subscription: str) -> int:
    row = connection.execute(QUERIES["count_pending"], {"subscription": subscription}).fetchone()
    return int(row[0])


def _pass(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    """Raises FenceBroken. Nothing is written yet, because a refusal that has written is dear."""
    if not fences:
        return
    looks = fencing([replace(fence, then=None) for fence in fences])
    refuse_broken(fences, [row for asked in looks for row in _rows(connection, asked)])


def _mark(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    if not fences:
        return
    for asked in fencing([fence for fence in fences if fence.then is not None]):
        _rows(connection, asked)


def _rows(connection: sqlite3.Connection, asked: Statement) -> list[Row]:
    return connection.execute(QUERIES[asked.name], asked.values).fetchall()


def _execute(connection: sqlite3.Connection, work: Sequence[Statement]) -> None:
    for statement in work:
        try:
            connection.execute(QUERIES[statement.name], statement.values)
        except sqlite3.IntegrityError as error:
            key = statements.contested_key(statement)
            if key is not None and error.sqlite_errorname == "SQLITE_CONSTRAINT_PRIMARYKEY":
                statements.refuse_taken(statement.name, key)
            raise
