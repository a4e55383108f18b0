"""The parts of a write to the file: fences, reads, statements and notes.

Each runs in a transaction that the writer has begun. What may refuse the write comes first, because
after a refusal that comes later the writer must run the whole batch again.
"""

import sqlite3
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from fairwarning.core.model import Actor, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Clock, Fence, Signal
from fairwarning.stores import records, statements
from fairwarning.stores.listeners import GLOBAL_SIGNAL
from fairwarning.stores.rows import Row, Stored, stored_of
from fairwarning.stores.sqlite.connection import QUERIES
from fairwarning.stores.statements import Statement
from fairwarning.stores.writes import unknown_scope

T = TypeVar("T")
Outcome = tuple[T, tuple[Signal, ...]]
"""The result for the caller, and the signals for the listeners."""


def check_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    """Raises FenceBroken if a record is not as its fence expects. It only reads, because a refusal
    after a write makes the writer run the whole batch again.
    """
    if not fences:
        return
    reads = records.fence_statements([replace(fence, then=None) for fence in fences])
    records.refuse_broken_fences(fences, [row for read in reads for row in rows(connection, read)])


def mark_fences(connection: sqlite3.Connection, fences: Sequence[Fence]) -> None:
    if not fences:
        return
    for statement in records.fence_statements(
        [fence for fence in fences if fence.then is not None]
    ):
        rows(connection, statement)


def read_scope(connection: sqlite3.Connection, scope_id: ScopeId) -> Stored:
    row = connection.execute(QUERIES["read_scope"], {"id": scope_id}).fetchone()
    if row is None:
        raise unknown_scope(scope_id)
    return stored_of(row[:-1], row[-1])


def count_pending(connection: sqlite3.Connection, subscription: str) -> int:
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


def append_note(
    connection: sqlite3.Connection, clock: Clock, note: Noted | None, by: Actor, why: str
) -> tuple[Signal, ...]:
    """Appends the note to the history, for no scope, and returns the signals to send."""
    if note is None:
        return ()
    execute(connection, [statements.note(note, at_ms=clock.now(), by=by, why=why)])
    return (GLOBAL_SIGNAL,)


def rows(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    return connection.execute(QUERIES[statement.name], statement.values).fetchall()
