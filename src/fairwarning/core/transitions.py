"""A transition is what can happen to a scope. The journal is a list of them; applying them in order
gives the scope.
"""

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
    """A node took the work, in the same commit in which it became possible."""

    event_id: EventId
    attempt: int
    node: NodeId
    lease_until_ms: Instant
    attempt_until_ms: Instant


class LeaseRenewed(Struct, frozen=True, kw_only=True):
    event_id: EventId
    lease_until_ms: Instant


class AttemptLost(Struct, frozen=True, kw_only=True):
    """The node fell silent or gave the work back. What it did is not known, so the driver is asked
    first.
    """

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
    """The document counts from 1 from here on, under a tag of its own."""

    at_ms: Instant
    """When the scope was activated. It also identifies the activation: no other of the scope has
    it."""
    reason: str = ""
    """Why a scope that was activated begins anew; empty if an instance asked for the document."""


class Deactivated(Struct, frozen=True, kw_only=True):
    at_ms: Instant


class DocumentChanged(Struct, frozen=True, kw_only=True):
    """What instances can see is different now. A transaction has one at most, however
    much changed.
    """

    incarnation: int


class InstancesAdded(Struct, frozen=True, kw_only=True):
    instances: tuple[Instance, ...]


class InstanceDeleted(Struct, frozen=True, kw_only=True):
    name: InstanceName
    at_ms: Instant
    without_notice: bool = False
    """It was due a Terminate event, and somebody said explicitly that it leaves without."""


class PowerChanged(Struct, frozen=True, kw_only=True):
    name: InstanceName
    power: Power


class ModelChanged(Struct, frozen=True, kw_only=True):
    model: Model


class InstancesUpgraded(Struct, frozen=True, kw_only=True):
    names: tuple[InstanceName, ...]
    lose_notice: tuple[InstanceName, ...] = ()
    """The instances that had a terminate notice and have none from now on."""


class PolicyChanged(Struct, frozen=True, kw_only=True):
    policy: Policy


class RosterDeclared(Struct, frozen=True, kw_only=True):
    """The operator declared the instances and rules of the scope; this is all of them."""

    roster: Roster


class Noted(Struct, frozen=True, kw_only=True):
    """Something happened outside all scopes: a token was made, a rollout paused. It is history
    only.
    """

    subject: str
    """What it is about, as `rollout:patch-tuesday`."""
    action: str
    """A past participle: `created`, `paused`, `revoked`."""
    detail: str = ""


class Unknown(Struct, frozen=True, kw_only=True):
    """A line of the journal that this version cannot read: a newer one wrote it, or it is damaged.

    Nothing can be concluded from it. It is shown in histories and passed over by all others.
    """

    kind: str
    body: str
    """The line as it is stored. It may hold secrets, because nobody knows what is in it."""
    event_id: EventId | None = None


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
KnownTransition = ScopeTransition | Noted
"""A transition that this version writes."""
Transition = KnownTransition | Unknown
"""A transition that a journal may hold."""

HOUSEKEEPING = (LeaseRenewed, Forgotten)
"""These are stored with the scope, but are no part of its history."""


def kind_of(transition: Transition) -> str:
    """The name of a transition in the journal."""
    return transition.kind if isinstance(transition, Unknown) else type(transition).__name__
