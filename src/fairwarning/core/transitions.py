"""A transition is one change of a scope. The journal is the list of all transitions."""

from msgspec import Struct

from fairwarning.core.hooks import HookStage
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    Instance,
    InstanceName,
    Model,
    NodeId,
    Phase,
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
    """An instance was shown the event for the first time."""

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
    late_ms: int = 0
    """How much earlier the event could have started, if an engine had been able to start it. It is
    0 if it started on time (`core/start_rules.py`, `LATE_MS`).
    """


class Cancelled(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str
    at_ms: Instant
    replaced_by: EventId | None = None


class HandedOver(Struct, frozen=True, kw_only=True):
    """A node took the work, in the same commit in which the work became ready."""

    event_id: EventId
    attempt: int
    node: NodeId
    lease_until_ms: Instant
    attempt_until_ms: Instant


class LeaseRenewed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    lease_until_ms: Instant


class AttemptLost(Struct, frozen=True, kw_only=True):
    """The node stopped answering or gave the work back, so the driver must be asked what it did."""

    event_id: EventId
    attempt: int
    at_ms: Instant


class AttemptFailed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    reason: str
    retry_ms: Instant


class HookFinished(Struct, frozen=True, kw_only=True):
    """A hook of the operator has ended, well or not."""

    event_id: EventId
    attempt: int
    stage: HookStage
    number: int
    """The place of the hook in the list of its stage, from 1 on."""
    name: str
    is_done: bool
    tries: int
    took_ms: int
    result: str
    output: str
    at_ms: Instant


class ImpactEnded(Struct, frozen=True, kw_only=True):
    """The driver has nothing more to do, and hooks after the impact are to run."""

    event_id: EventId
    outcome: Phase
    """COMPLETED or FAILED. The event ends so when the hooks have ended."""
    reason: str
    at_ms: Instant


class Completed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    at_ms: Instant


class Failed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str
    at_ms: Instant


class Activated(Struct, frozen=True, kw_only=True):
    """The scope was activated. Its documents are numbered from 1, with a new entity tag."""

    at_ms: Instant
    """When the scope was activated. No other activation of the scope has this instant."""
    reason: str = ""
    """Why the scope was activated again. Empty if an instance asked for the document."""


class Deactivated(Struct, frozen=True, kw_only=True):
    at_ms: Instant


class DocumentChanged(Struct, frozen=True, kw_only=True):
    """The document that instances see has changed. A transaction has at most one of these."""

    incarnation: int


class InstancesAdded(Struct, frozen=True, kw_only=True):
    instances: tuple[Instance, ...]


class InstanceDeleted(Struct, frozen=True, kw_only=True):
    name: InstanceName
    at_ms: Instant
    without_notice: bool = False
    """Whether the operator wanted the delete without the Terminate event that was due."""


class PowerChanged(Struct, frozen=True, kw_only=True):
    name: InstanceName
    power: Power


class ModelChanged(Struct, frozen=True, kw_only=True):
    model: Model


class InstancesUpgraded(Struct, frozen=True, kw_only=True):
    names: tuple[InstanceName, ...]
    lose_notice: tuple[InstanceName, ...] = ()
    """The instances that had a terminate notice and lose it by this upgrade."""


class PolicyChanged(Struct, frozen=True, kw_only=True):
    policy: Policy


class RosterDeclared(Struct, frozen=True, kw_only=True):
    """The operator declared the scope. `roster` has all its instances and rules."""

    roster: Roster


class Noted(Struct, frozen=True, kw_only=True):
    """A line of the history that belongs to no scope, such as the creation of a token."""

    subject: str
    """The kind and name of the thing that has changed, such as `rollout:patch-tuesday`."""
    action: str
    """What happened to the subject, as a past participle: `created`, `paused`, `revoked`."""
    detail: str = ""


class Unknown(Struct, frozen=True, kw_only=True):
    """A damaged or newer line of the journal. Histories show it; all other readers ignore it."""

    kind: str
    body: str
    """The line as it is stored. It may contain secrets, because its meaning is unknown."""
    event_id: EventId | None = None


class Forgotten(Struct, frozen=True, kw_only=True):
    """Old finished events and deleted instances were removed from the scope."""

    event_ids: tuple[EventId, ...]
    names: tuple[InstanceName, ...]


EventTransition = (
    Scheduled | Approved | Seen | Drained | Started | Cancelled | HandedOver | LeaseRenewed |
    AttemptLost | AttemptFailed | HookFinished | ImpactEnded | Completed | Failed
)  # fmt: skip
RosterTransition = (
    InstancesAdded | InstanceDeleted | PowerChanged | ModelChanged | InstancesUpgraded |
    PolicyChanged | RosterDeclared
)  # fmt: skip
ScopeTransition = (
    EventTransition | RosterTransition | Activated | Deactivated | DocumentChanged | Forgotten
)
KnownTransition = ScopeTransition | Noted
"""A transition that this version writes."""
Transition = KnownTransition | Unknown
"""A transition that can be in a journal."""

HOUSEKEEPING = (LeaseRenewed, Forgotten)
"""The transitions that are stored with the scope but are not part of its history."""


def kind_of(transition: Transition) -> str:
    """Return the name of the transition in the journal."""
    return transition.kind if isinstance(transition, Unknown) else type(transition).__name__
