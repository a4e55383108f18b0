"""What can happen to a scope. The journal is a list of these; folding them gives the scope."""

from msgspec import Struct

from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    Instance,
    InstanceName,
    Model,
    NodeId,
    Policy,
    Power,
    Roster,
    StartCause,
)


class Scheduled(Struct, frozen=True, kw_only=True):
    event: Event

    @property
    def event_id(self) -> EventId:
        return self.event.id


class Approved(Struct, frozen=True, kw_only=True):
    event_id: EventId
    by: Actor
    at_ms: Instant


class Seen(Struct, frozen=True, kw_only=True):
    """The first instance was shown the event."""

    event_id: EventId
    name: InstanceName
    at_ms: Instant


class Drained(Struct, frozen=True, kw_only=True):
    """An instance says that it is ready for the event."""

    event_id: EventId
    name: InstanceName
    at_ms: Instant


class Started(Struct, frozen=True, kw_only=True):
    event_id: EventId
    cause: StartCause
    at_ms: Instant


class Cancelled(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str
    at_ms: Instant
    replaced_by: EventId | None = None


class HandedOver(Struct, frozen=True, kw_only=True):
    """A node has the work, in the same commit in which it became possible."""

    event_id: EventId
    attempt: int
    node: NodeId
    lease_until_ms: Instant
    attempt_until_ms: Instant


class LeaseRenewed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    lease_until_ms: Instant


class AttemptLost(Struct, frozen=True, kw_only=True):
    """The node fell silent or gave the work back. What it did is not known: look first."""

    event_id: EventId
    attempt: int
    at_ms: Instant


class AttemptFailed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    reason: str
    retry_ms: Instant


class Completed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    at_ms: Instant


class Failed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str
    at_ms: Instant


class Activated(Struct, frozen=True, kw_only=True):
    at_ms: Instant


class Deactivated(Struct, frozen=True, kw_only=True):
    at_ms: Instant


class DocumentChanged(Struct, frozen=True, kw_only=True):
    """What instances can see is different now. Once a transaction, however much changed."""

    incarnation: int


class InstancesAdded(Struct, frozen=True, kw_only=True):
    instances: tuple[Instance, ...]


class InstanceDeleted(Struct, frozen=True, kw_only=True):
    name: InstanceName
    at_ms: Instant


class PowerChanged(Struct, frozen=True, kw_only=True):
    name: InstanceName
    power: Power


class ModelChanged(Struct, frozen=True, kw_only=True):
    model: Model


class InstancesUpgraded(Struct, frozen=True, kw_only=True):
    names: tuple[InstanceName, ...]


class PolicyChanged(Struct, frozen=True, kw_only=True):
    policy: Policy


class RosterDeclared(Struct, frozen=True, kw_only=True):
    """The operator says who is in the scope and under which rules; this is all of it."""

    roster: Roster


class Noted(Struct, frozen=True, kw_only=True):
    """Something outside all scopes: a token was made, a rollout paused. History only."""

    subject: str
    """What it is about, as `rollout:patch-tuesday`."""
    action: str
    """A past participle: `created`, `paused`, `revoked`."""
    detail: str = ""


class Forgotten(Struct, frozen=True, kw_only=True):
    """Finished events and deleted instances past their retention leave the scope."""

    event_ids: tuple[EventId, ...]
    names: tuple[InstanceName, ...]


EventTransition = (
    Scheduled
    | Approved
    | Seen
    | Drained
    | Started
    | Cancelled
    | HandedOver
    | LeaseRenewed
    | AttemptLost
    | AttemptFailed
    | Completed
    | Failed
)
RosterTransition = (
    InstancesAdded
    | InstanceDeleted
    | PowerChanged
    | ModelChanged
    | InstancesUpgraded
    | PolicyChanged
    | RosterDeclared
)
ScopeTransition = (
    EventTransition | RosterTransition | Activated | Deactivated | DocumentChanged | Forgotten
)
Transition = ScopeTransition | Noted

HOUSEKEEPING = (LeaseRenewed, Forgotten)
"""Stored with the scope, but no part of its history."""
