"""Plans one transaction of an SQL store: runs the pure step, and makes its SQL statements."""

from msgspec import Struct

from fairwarning.core.model import Actor
from fairwarning.engine.protocols import Moment, Receipt, Signal, Step
from fairwarning.stores import statements
from fairwarning.stores.codec import Stored
from fairwarning.stores.statements import Statement
from fairwarning.stores.writes import Writes, writes_of


class TransactionPlan(Struct, frozen=True, kw_only=True):
    receipt: Receipt
    statements: tuple[Statement, ...]
    """The statements to execute before the commit. They are empty if nothing has changed."""
    signals: tuple[Signal, ...]


def signal_of(writes: Writes) -> Signal:
    scope = writes.scope
    return Signal(scope_id=scope.id, next_deadline_ms=writes.next_deadline_ms, scope=scope)


def plan_transaction(
    stored: Stored, step: Step, moment: Moment, *, by: Actor, why: str
) -> TransactionPlan:
    """Runs the step on the stored scope and returns what the store must write. Raises what the step
    raises, and Refused if two instances share an address.
    """
    before, now = stored.scope, moment.now_ms
    change = step(before, moment)
    deadline = change.next_deadline_ms
    if not change.transitions:
        has_moved = deadline != stored.next_deadline_ms
        return TransactionPlan(
            receipt=Receipt(scope=before, at_ms=now, transitions=()),
            statements=(statements.new_deadline(before.id, deadline),) if has_moved else (),
            signals=(),
        )
    writes = writes_of(before, change)
    return TransactionPlan(
        receipt=Receipt(scope=writes.scope, at_ms=now, transitions=change.transitions),
        statements=statements.change(writes, at_ms=now, by=by, why=why),
        signals=(signal_of(writes),),
    )
