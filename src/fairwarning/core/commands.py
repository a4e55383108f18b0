"""What can be asked of a scope. Each is decided alone, on one scope, at one instant.

New ids come in with the command, so that asking twice is recognised as one question.
"""

from dataclasses import dataclass

from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    EventId,
    EventType,
    Instance,
    InstanceName,
    NodeId,
    OperationKind,
    Policy,
    Power,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Announce a platform event. Neither notice nor instant given: the minimum notice."""

    event_id: EventId
    type: EventType
    targets: tuple[InstanceName, ...]
    notice_ms: int | None = None
    not_before_ms: Instant | None = None
    description: str | None = None
    duration_s: int | None = None
    already_happened: bool = False
    """A failure that nobody could announce: the event appears as Started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operate:
    """Restart, redeploy, delete or evict, as the owner of the instance asks."""

    event_id: EventId
    kind: OperationKind
    instance: InstanceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    event_id: EventId
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    event_id: EventId
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postpone:
    """NotBefore never moves: cancel the event and announce another in its place."""

    event_id: EventId
    new_event_id: EventId
    not_before_ms: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate:
    """An instance of the scope has asked for the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed: do whatever is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDone:
    """The driver says that the impact is over. Believed whatever the attempt: the key is one."""

    event_id: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFailure:
    event_id: EventId
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease:
    event_id: EventId
    attempt: int
    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A node that stops gives its work back, so that the next one need not wait."""

    event_id: EventId
    attempt: int
    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class AddInstances:
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeModel:
    """A scale set's terminate profile; existing instances keep theirs until upgraded."""

    terminate_notice_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeInstances:
    names: tuple[InstanceName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePolicy:
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPower:
    instance: InstanceName
    power: Power


Command = (
    Schedule
    | Operate
    | Approve
    | Cancel
    | Postpone
    | Activate
    | Tick
    | ReportDone
    | ReportFailure
    | RenewLease
    | Release
    | AddInstances
    | ChangeModel
    | UpgradeInstances
    | ChangePolicy
    | ReportPower
)
