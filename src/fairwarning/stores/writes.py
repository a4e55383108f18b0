"""Computes the rows that a change adds or updates. It is the same for every store."""

from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core import transitions
from fairwarning.core.decide import Change
from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import fold
from fairwarning.core.limits import pending_operations
from fairwarning.core.model import Event, EventId, InstanceName, Phase, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import HOUSEKEEPING, EventTransition, Transition
from fairwarning.engine.protocols import Signal

# A renewed lease is stored with the scope, and is not part of the event itself.
_ON_EVENT = tuple(
    each for each in get_args(EventTransition) if each is not transitions.LeaseRenewed
)


class Writes(Struct, frozen=True, kw_only=True):
    """The rows that one transaction writes for one scope."""

    scope: Scope
    """The scope after the change, with its new revision."""
    roster_changed: bool
    new_events: tuple[Event, ...]
    changed_events: tuple[Event, ...]
    old_phases: Mapping[EventId, Phase]
    """The old phase of each event whose phase has changed."""
    entries: tuple[Transition, ...]
    addresses_added: tuple[tuple[str, InstanceName], ...]
    addresses_removed: tuple[str, ...]
    """Remove these before you add others, because an address may move between instances."""
    next_deadline_ms: Instant | None
    pending_operations: int

    @property
    def signal(self) -> Signal:
        """The signal that tells of this commit."""
        scope = self.scope
        return Signal(scope_id=scope.id, next_deadline_ms=self.next_deadline_ms, scope=scope)


def writes_of(before: Scope, change: Change) -> Writes:
    """Returns the rows of a changed scope. Raises Refused if two instances share an address."""
    after = replace(change.scope, revision=before.revision + 1)
    new, touched = _events_touched(change.transitions)
    events = after.events
    if not events.keys() >= set(touched):
        # An event ended and was forgotten in this one transaction, so `after` no longer has it.
        remembered = (
            each for each in change.transitions if not isinstance(each, transitions.Forgotten)
        )
        events = fold(before, remembered).events
    roster_changed = before.roster is not after.roster
    changed = tuple(events[id] for id in touched if id not in new)
    added, removed = (
        _address_changes(_addresses(before), _addresses(after)) if roster_changed else ((), ())
    )
    return Writes(
        scope=after,
        roster_changed=roster_changed,
        new_events=tuple(events[id] for id in new),
        changed_events=changed,
        old_phases={
            each.id: was
            for each in changed
            if (was := before.events[each.id].phase) is not each.phase
        },
        entries=tuple([each for each in change.transitions if not isinstance(each, HOUSEKEEPING)]),
        addresses_added=added,
        addresses_removed=removed,
        next_deadline_ms=change.next_deadline_ms,
        pending_operations=pending_operations(after),
    )


def writes_of_new(scope: Scope) -> Writes:
    """Returns the rows of a new scope. Raises Refused if two instances share an address."""
    instances = tuple(scope.roster.instances.values())
    return Writes(
        scope=replace(scope, revision=1),
        roster_changed=True,
        new_events=(),
        changed_events=(),
        old_phases={},
        entries=(transitions.InstancesAdded(instances=instances),),
        addresses_added=tuple(_addresses(scope).items()),
        addresses_removed=(),
        next_deadline_ms=None,
        pending_operations=0,
    )


def event_id_of(transition: Transition) -> EventId | None:
    """Returns the id of the event that the transition is about, or None."""
    found: EventId | None = getattr(transition, "event_id", None)
    return found


def _events_touched(made: Iterable[Transition]) -> tuple[list[EventId], list[EventId]]:
    new: list[EventId] = []
    touched: dict[EventId, None] = {}
    for transition in made:
        if isinstance(transition, transitions.Scheduled):
            new.append(transition.event_id)
        if isinstance(transition, _ON_EVENT):
            touched[transition.event_id] = None
    return new, list(touched)


def _address_changes(
    old: Mapping[str, InstanceName], new: Mapping[str, InstanceName]
) -> tuple[tuple[tuple[str, InstanceName], ...], tuple[str, ...]]:
    """Returns the addresses to add, with their instances, and the addresses to remove."""
    return (
        tuple(each for each in new.items() if old.get(each[0]) != each[1]),
        tuple(address for address, name in old.items() if new.get(address) != name),
    )


def _addresses(scope: Scope) -> dict[str, InstanceName]:
    found: dict[str, InstanceName] = {}
    for instance in scope.roster.instances.values():
        for address in instance.addresses:
            if address in found:
                refuse_address_in_use(address)
            found[address] = instance.name
    return found


def refuse_address_in_use(address: str) -> None:
    """Raises Refused, because another instance has this address."""
    raise Refused(
        Code.ADDRESS_IN_USE,
        f"address {address} already belongs to an instance; addresses are unique across the "
        "fleet, so choose another",
    )


def refuse_scope_exists(scope_id: ScopeId) -> None:
    """Raises Refused, because a scope with this id exists."""
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
