"""The work that the store and the bare driver both do: schedule an event, and cancel it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from fairwarning.core.commands import Activate, Cancel, Command, Schedule
from fairwarning.core.decide import decide
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    Scope,
    ScopeId,
    operator_actor,
)
from fairwarning.core.resources import VirtualMachine, expand
from fairwarning.engine.protocols import Moment
from fairwarning.stores.codec import Stored
from fairwarning.stores.sql_store import plan_transaction
from fairwarning.stores.statements import Statement

ME = operator_actor("benchmark")
_numbers = count(1)


def new_id() -> EventId:
    return EventId(f"00000000-0000-4000-8000-{next(_numbers):012X}")


def virtual_machines(number: int) -> list[VirtualMachine]:
    return [
        VirtualMachine(name=f"vm{n}", addresses=(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",))
        for n in range(number)
    ]


def scopes(number: int) -> list[Scope]:
    return [scope for machine in virtual_machines(number) for scope in expand(machine)]


def commands(scope: Scope, pairs: int) -> Iterator[Command]:
    name = InstanceName(scope.roster.resource)
    yield Activate()
    for _ in range(pairs):
        id = new_id()
        yield Schedule(event_id=id, type=EventType.FREEZE, targets=(name,))
        yield Cancel(event_id=id)


@dataclass(frozen=True, slots=True)
class BareTransaction:
    scope_id: ScopeId
    statements: tuple[Statement, ...]


def bare_transactions(scope: Scope, pairs: int, now: Instant) -> Sequence[BareTransaction]:
    """Returns the statements that a store would issue, made beforehand."""
    stored = Stored(scope=replace(scope, revision=1), next_deadline_ms=None)
    transactions = []
    for command in commands(scope, pairs):
        transaction = plan_transaction(
            stored,
            lambda scope, moment, command=command: decide(scope, command, moment.now_ms),  # type: ignore[misc]
            Moment(now_ms=now),
            by=ME,
            why="",
        )
        transactions.append(BareTransaction(scope.id, transaction.statements))
        stored = Stored(
            scope=transaction.receipt.scope,
            next_deadline_ms=transaction.signals[0].next_deadline_ms,
        )
    return transactions
