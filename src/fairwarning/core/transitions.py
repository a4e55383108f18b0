"""What can happen to a scope. The journal is a list of these; folding them gives the scope."""

from dataclasses import dataclass

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
    StartCause,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    event: Event

    @property
    def event_id(self) -> EventId:
        return self.event.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    event_id: EventId
    by: Actor
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    event_id: EventId
    cause: StartCause
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    event_id: EventId
    reason: str
    at_ms: Instant
    replaced_by: EventId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A node has the work, in the same commit in which it became possible."""

    event_id: EventId
    attempt: int
    node: NodeId
    lease_until_ms: Instant
    attempt_until_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRenewed:
    event_id: EventId
    lease_until_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLost:
    """The node fell silent or gave the work back. What it did is not known: look first."""

    event_id: EventId
    attempt: int
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    event_id: EventId
    attempt: int
    reason: str
    retry_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    event_id: EventId
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    event_id: EventId
    reason: str
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Deactivated:
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChanged:
    """What instances can see is different now. Once a transaction, however much changed."""

    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesAdded:
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceDeleted:
    name: InstanceName
    at_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerChanged:
    name: InstanceName
    power: Power


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChanged:
    model: Model


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesUpgraded:
    names: tuple[InstanceName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged:
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Finished events and deleted instances past their retention leave the scope."""

    event_ids: tuple[EventId, ...]
    names: tuple[InstanceName, ...]


EventTransition = (
    Scheduled
    | Approved
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
)
Transition = (
    EventTransition | RosterTransition | Activated | Deactivated | DocumentChanged | Forgotten
)

HOUSEKEEPING = (LeaseRenewed, Forgotten)
"""Stored with the scope, but no part of its history."""
