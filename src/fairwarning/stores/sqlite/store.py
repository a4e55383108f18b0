"""The embedded store has one file, which one process uses, with one writer.

Theory of operation. No other process writes to the file (`FileLock` in `connection.py`). So the
journal's numbers are in the order of the commits, and a count over a subscription is exact without
a lock. All writes use one connection, and a thread commits them in groups (`writer.py` describes
the steps of one write). Reads use another connection. In WAL mode they see the last commit, and do
not wait for the next one. With `synchronous = FULL`, a loss of power undoes nothing that was
answered.
"""

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    Position,
    Receipt,
    Record,
    Step,
    StoreDown,
)
from fairwarning.stores.codec import encode
from fairwarning.stores.event_queries import counts_of, page_of
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.records import delete_statement, put_statement
from fairwarning.stores.rows import Row, entry_of, event_of, record_of, scope_of
from fairwarning.stores.sqlite import transactions
from fairwarning.stores.sqlite.connection import QUERIES, FileLock, Reader, migrate, store_down
from fairwarning.stores.sqlite.writer import InlineCommits, Writer
from fairwarning.stores.writes import unknown_event, unknown_scope, writes_of_new

_SEQ_MAX = 2**63 - 1


class SqliteStore:
    def __init__(
        self, path: str | Path, clock: Clock, inline_commits: InlineCommits | None = None
    ) -> None:
        self._path = Path(path)
        self._inline_commits = inline_commits or InlineCommits()
        self._clock = clock
        self._listeners = Listeners()
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
        self._lock.release()

    def listen(self, listener: Listener) -> None:
        self._listeners.add(listener)

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        planned = [writes_of_new(scope) for scope in scopes]
        await self._writer.submit(
            lambda connection: transactions.create_scopes(
                connection, self._clock, planned, by=by, why=why, fences=fences
            )
        )

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
        return await self._writer.submit(
            lambda connection: transactions.transact(
                connection,
                self._clock,
                scope_id,
                step,
                by=by,
                why=why,
                counting=counting,
                fences=fences,
            ),
            is_small=True,
        )

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
        await self._writer.submit(lambda connection: transactions.note_seen(connection, seen))

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
        statement = put_statement(kind, key, body, expected)
        return await self._writer.submit(
            lambda connection: transactions.put_record(
                connection, self._clock, statement, note=note, by=by, why=why, fences=fences
            )
        )

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
        statement = delete_statement(kind, key)
        return await self._writer.submit(
            lambda connection: transactions.delete_record(
                connection,
                self._clock,
                statement,
                expected=expected,
                note=note,
                by=by,
                why=why,
                fences=fences,
            )
        )

    def _prepare(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.acquire()
            # The file holds signing keys. SQLite gives its WAL beside it the same permissions.
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
