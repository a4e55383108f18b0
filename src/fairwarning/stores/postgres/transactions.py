"""Changes scopes and records while other nodes may want to change them too.

Theory of operation. A transaction is two messages to the server. The first message begins the
transaction, locks the scope, and then reads its row, the roster and the clock. Each read is a
statement of its own after the lock, so it cannot return a state from before the lock. Between the
two messages the pure step decides. The second message writes and commits. After a crash at any
point, either all of the change is stored or nothing. If a node is silent between the messages, the
server ends the transaction and releases its locks (`limit_session`).

`now` is the time of the server's clock, so that all nodes use the same time. A counting transaction
first locks its subscription, and counts after that. Locks are always taken in the order
subscription, scope, row, fences, address, event, so that no two transactions wait for each other. A
record has a separate kind of lock. A transaction on a record takes only this lock and those of its
fences.

Before all of these, the server checks that this node knows enough of the schema to write
(`check_writer`), and no migration can change that until the transaction has ended (`schema.py`).
"""

from collections.abc import Mapping, Sequence

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Scope, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import Clock, Fence, Moment, Receipt, Record, ScopeBusy, Step
from fairwarning.stores import statements
from fairwarning.stores.codec import Stored, stored_of
from fairwarning.stores.listeners import GLOBAL_SIGNAL
from fairwarning.stores.postgres.database import BEGIN, COMMIT, Database, Results, run
from fairwarning.stores.postgres.signals import Signals
from fairwarning.stores.sql_store import plan_transaction
from fairwarning.stores.statements import Statement
from fairwarning.stores.writes import unknown_scope, writes_of_new

SEEN_SCOPES_MAX = 100
"""At most this many scopes are noted in one transaction, which locks their rows until its end."""


class Transactions:
    def __init__(
        self, database: Database, signals: Signals, newest_schema: int, clock: Clock | None
    ) -> None:
        self._database = database
        self._signals = signals
        self._clock = clock
        self._begin = (BEGIN, Statement("check_writer", {"newest": newest_schema}))

    async def create(
        self, scopes: Sequence[Scope], by: Actor, why: str, fences: Sequence[Fence]
    ) -> None:
        planned = [writes_of_new(scope) for scope in scopes]
        async with self._database.connection() as connection:
            found = await run(
                connection,
                [*self._begin, *statements.fence_statements(fences), Statement("clock", {})],
            )
            _refuse_broken(fences, found)
            work = statements.creation(planned, at_ms=self._now(found), by=by, why=why)
            await run(connection, [*work, COMMIT])
        self._signals.publish(writes.signal for writes in planned)

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str,
        counting: bool,
        skip_busy: bool,
        fences: Sequence[Fence],
    ) -> Receipt:
        opening = _opening(scope_id, fences, counting=counting, skip_busy=skip_busy)
        async with self._database.connection() as connection:
            found = await run(connection, [*self._begin, *opening])
            _refuse_broken(fences, found)
            stored = _stored(scope_id, found)
            pending = found["count_pending"][0][0] if counting else 0
            moment = Moment(now_ms=self._now(found), pending_operations=pending)
            plan = plan_transaction(stored, step, moment, by=by, why=why)
            if plan.statements or "mark_record" in found:
                await run(connection, [*plan.statements, COMMIT])
        self._signals.publish(plan.signals)
        return plan.receipt

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        notes = statements.seen(seen)
        for first in range(0, len(notes), SEEN_SCOPES_MAX):
            async with self._database.connection() as connection:
                page = notes[first : first + SEEN_SCOPES_MAX]
                await run(connection, [*self._begin, *page, COMMIT])

    async def keep(
        self,
        statement: Statement,
        *,
        note: Noted | None,
        by: Actor,
        why: str,
        fences: Sequence[Fence],
    ) -> Record:
        async with self._database.connection() as connection:
            opening = _opening_of_record(statement, fences)
            found = await run(connection, [*self._begin, *opening])
            _refuse_broken(fences, found)
            record = statements.record_put(statement, found[statement.name])
            await run(connection, [*self._lines(found, note, by, why), COMMIT])
        self._publish(note)
        return record

    async def drop(
        self,
        statement: Statement,
        *,
        expected: int | None,
        note: Noted | None,
        by: Actor,
        why: str,
        fences: Sequence[Fence],
    ) -> bool:
        async with self._database.connection() as connection:
            opening = _opening_of_record(statement, fences)
            found = await run(connection, [*self._begin, *opening])
            _refuse_broken(fences, found)
            was_there = statements.was_deleted(statement, expected, found[statement.name])
            written_note = note if was_there else None
            await run(connection, [*self._lines(found, written_note, by, why), COMMIT])
        self._publish(written_note)
        return was_there

    def _lines(self, found: Results, note: Noted | None, by: Actor, why: str) -> list[Statement]:
        now = self._now(found)
        return [] if note is None else [statements.note(note, at_ms=now, by=by, why=why)]

    def _publish(self, note: Noted | None) -> None:
        if note is not None:
            self._signals.publish([GLOBAL_SIGNAL])

    def _now(self, found: Results) -> Instant:
        ((now_ms,),) = found["clock"]
        return Instant(now_ms) if self._clock is None else self._clock.now()


def _opening(
    scope_id: ScopeId, fences: Sequence[Fence], *, counting: bool, skip_busy: bool
) -> list[Statement]:
    """Returns the first statements of a transaction: locks first, and then reads."""
    locks = [
        *(["lock_subscription"] if counting else []),
        *(["try_enter_scope", "lock_free_scope"] if skip_busy else ["enter_scope", "lock_scope"]),
    ]
    reads = ["roster", *(["count_pending"] if counting else []), "clock"]
    values = {"id": scope_id}
    return [
        *(Statement(name, values) for name in locks),
        *statements.fence_statements(fences),
        *(Statement(name, values) for name in reads),
    ]


def _opening_of_record(statement: Statement, fences: Sequence[Fence]) -> list[Statement]:
    values = statement.values
    return [
        Statement("enter_record", values),
        *statements.fence_statements(fences),
        Statement("clock", values),
        statement,
    ]


def _refuse_broken(fences: Sequence[Fence], found: Results) -> None:
    """Raises FenceBroken if a fence is broken. Then the caller must roll back the transaction."""
    statements.refuse_broken_fences(
        fences, [*found.get("hold_record", ()), *found.get("mark_record", ())]
    )


def _stored(scope_id: ScopeId, found: Results) -> Stored:
    """Returns the scope that `_opening` read. Raises ScopeBusy if another node has locked the
    scope, and Refused if there is no such scope.
    """
    skips_busy = "try_enter_scope" in found
    rows = found["lock_free_scope" if skips_busy else "lock_scope"]
    has_entered = not skips_busy or found["try_enter_scope"][0][0]
    if skips_busy and found["roster"] and not (rows and has_entered):
        raise ScopeBusy(f"another node is at work on {scope_id}")
    if not rows:
        raise unknown_scope(scope_id)
    return stored_of(rows[0], found["roster"][0][0])
