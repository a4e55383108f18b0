"""The functions that write to the file. Each one reads, decides and stores in one transaction.

Every function runs in a transaction that the writer has begun. It returns its result, and the
signals to send after the commit. It should raise only before it writes, because otherwise the
writer must run the whole batch again.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Clock, Fence, Moment, Receipt, Record, Signal, Step
from fairwarning.stores import records, statements
from fairwarning.stores.listeners import GLOBAL_SIGNAL
from fairwarning.stores.rows import Row, Stored, stored_of
from fairwarning.stores.sqlite.connection import QUERIES
from fairwarning.stores.statements import Statement
from fairwarning.stores.transaction import plan_transaction, signal_of
from fairwarning.stores.writes import Writes, unknown_scope

T = TypeVar("T")
Outcome = tuple[T, tuple[Signal, ...]]
"""The result for the caller, and the signals for the listeners."""


def create_scopes(
    connection: sqlite3.Connection,
    clock: Clock,
    planned: Sequence[Writes],
    *,
    by: Actor,
    why: str,
    fences: Sequence[Fence],
) -> Outcome[None]:
    _check_fences(connection, fences)
    _execute(connection, statements.creation(planned, at_ms=clock.now(), by=by, why=why))
    _mark_fences(connection, fences)
    return None, tuple(signal_of(writes) for writes in planned)


def transact(
    connection: sqlite3.Connection,
    clock: Clock,
    scope_id: ScopeId,
    step: Step,
    *,
    by: Actor,
    why: str,
    counting: bool,
    fences: Sequence[Fence],
) -> Outcome[Receipt]:
    _check_fences(connection, fences)
    stored = _read_scope(connection, scope_id)
    subscription = stored.scope.roster.subscription
    pending = _count_pending(connection, subscription) if counting else 0
    moment = Moment(now_ms=clock.now(), pending_operations=pending)
    plan = plan_transaction(stored, step, moment, by=by, why=why)
    _execute(connection, plan.statements)
    _mark_fences(connection, fences)
    return plan.receipt, plan.signals


def note_seen(connection: sqlite3.Connection, seen: Mapping[ScopeId, Instant]) -> Outcome[None]:
    _execute(connection, statements.seen(seen))
    return None, ()


def put_record(
    connection: sqlite3.Connection,
    clock: Clock,
    statement: Statement,
    *,
    note: Noted | None,
    by: Actor,
    why: str,
    fences: Sequence[Fence],
) -> Outcome[Record]:
    _check_fences(connection, fences)
    record = records.record_put(statement, _rows(connection, statement))
    _mark_fences(connection, fences)
    return record, _append_note(connection, clock, note, by, why)


def delete_record(
    connection: sqlite3.Connection,
    clock: Clock,
    statement: Statement,
    *,
    expected: int | None,
    note: Noted | None,
    by: Actor,
    why: str,
    fences: Sequence[Fence],
) -> Outcome[bool]:
    _check_fences(connection, fences)
    was_there = records.was_deleted(statement, expected, _rows(connection, statement))
    _mark_fences(connection, fences)
    return was_there, _append_note(connection, clock, note if was_there else None, by, why)


def _check_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    """Raises FenceBroken if a record is not as its fence expects. It only reads, because a refusal
    after a write makes the writer run the whole batch again.
    """
    if not fences:
        return
    reads = records.fence_statements([replace(fence, then=None) for fence in fences])
    records.refuse_broken_fences(fences, [row for read in reads for row in _rows(connection, read)])


def _mark_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    if not fences:
        return
    for statement in records.fence_statements(
        [fence for fence in fences if fence.then is not None]
    ):
        _rows(connection, statement)


def _read_scope(connection: sqlite3.Connection, scope_id: ScopeId) -> Stored:
    row = connection.execute(QUERIES["read_scope"], {"id": scope_id}).fetchone()
    if row is None:
        raise unknown_scope(scope_id)
    return stored_of(row[:-1], row[-1])


def _count_pending(connection: sqlite3.Connection, subscription: str) -> int:
    row = connection.execute(QUERIES["count_pending"], {"subscription": subscription}).fetchone()
    return int(row[0])


def _execute(connection: sqlite3.Connection, writes: Sequence[Statement]) -> None:
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
    _execute(connection, [statements.note(note, at_ms=clock.now(), by=by, why=why)])
    return (GLOBAL_SIGNAL,)


def _rows(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    return connection.execute(QUERIES[statement.name], statement.values).fetchall()
