"""What a change means for any store: which rows it touches. Pure, and the same for all."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fairwarning.core.decide import Change
from fairwarning.core.instants import Instant
from fairwarning.core.model import Event, EventId, InstanceName, Scope, ScopeId
from fairwarning.core.operations import pending_operations
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import (
    HOUSEKEEPING,
    Approved,
    AttemptFailed,
    AttemptLost,
    Cancelled,
    Completed,
    Failed,
    HandedOver,
    InstancesAdded,
    Scheduled,
    Started,
    Transition,
)

_ON_EVENT = (
    Scheduled,
    Approved,
    Started,
    Cancelled,
    HandedOver,
    AttemptLost,
    AttemptFailed,
    Completed,
    Failed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The rows of one transaction on one scope."""

    scope: Scope
    """With its revision raised."""
    roster_changed: bool
    born: tuple[Event, ...]
    changed: tuple[Event, ...]
    entries: tuple[Transition, ...]
    addresses_added: tuple[tuple[str, InstanceName], ...]
    addresses_removed: tuple[str, ...]
    next_deadline_ms: Instant | None
    pending_operations: int


def writes_of(before: Scope, change: Change) -> Writes:
    after = replace(change.scope, revision=before.revision + 1)
    born, touched = _events_touched(change.transitions)
    old, new = _addresses(before), _addresses(after)
    same_roster = before.roster is after.roster
    return Writes(
        scope=after,
        roster_changed=not same_roster,
        born=tuple(after.events[id] for id in born),
        changed=tuple(after.events[id] for id in touched if id not in born),
        entries=tuple(each for each in change.transitions if not isinstance(each, HOUSEKEEPING)),
        addresses_added=()
        if same_roster
        else tuple((address, name) for address, name in new.items() if address not in old),
        addresses_removed=()
        if same_roster
        else tuple(address for address in old if address not in new),
        next_deadline_ms=change.next_deadline_ms,
        pending_operations=pending_operations(after),
    )


def writes_of_new(scope: Scope) -> Writes:
    """A scope that is declared: all of its rows are new."""
    instances = tuple(scope.roster.instances.values())
    return Writes(
        scope=replace(scope, revision=1),
        roster_changed=True,
        born=(),
        changed=(),
        entries=(InstancesAdded(instances=instances),),
        addresses_added=tuple(_addresses(scope).items()),
        addresses_removed=(),
        next_deadline_ms=None,
        pending_operations=0,
    )


def _events_touched(transitions: Iterable[Transition]) -> tuple[list[EventId], list[EventId]]:
    born: list[EventId] = []
    touched: dict[EventId, None] = {}
    for transition in transitions:
        if isinstance(transition, Scheduled):
            born.append(transition.event_id)
        if isinstance(transition, _ON_EVENT):
            touched[transition.event_id] = None
    return born, list(touched)


def _addresses(scope: Scope) -> dict[str, InstanceName]:
    found: dict[str, InstanceName] = {}
    for instance in scope.roster.instances.values():
        for address in instance.addresses:
            if address in found:
                refuse_address_in_use(address)
            found[address] = instance.name
    return found


def refuse_address_in_use(address: str) -> None:
    raise Refused(
        Code.ADDRESS_IN_USE,
        f"address {address} already belongs to an instance; addresses are unique across the "
        "fleet, so choose another",
    )


def refuse_scope_exists(scope_id: ScopeId) -> None:
    raise Refused(
        Code.SCOPE_EXISTS,
        f"scope {scope_id} is declared already; change it, or choose another name",
    )


def unknown_scope(scope_id: ScopeId) -> Refused:
    return Refused(
        Code.UNKNOWN_SCOPE, f"there is no scope {scope_id!r}; `fairwarning fleet show` lists them"
    )


def unknown_event(event_id: EventId) -> Refused:
    return Refused(
        Code.UNKNOWN_EVENT, f"there is no event {event_id}; `fairwarning events --all` lists them"
    )
