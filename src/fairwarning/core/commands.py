"""A command is what can be asked of a scope. Each is decided alone, on one scope, at one instant.

New ids come in with the command, so that a repeated command is recognised as the same one.
"""

from collections.abc import Mapping

from msgspec import Struct

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
    Roster,
)


class Schedule(Struct, frozen=True, kw_only=True):
    """Announce a platform event. It gets the minimum notice unless a notice or an
    instant is given.
    """

    event_id: EventId
    type: EventType
    targets: tuple[InstanceName, ...]
    notice_ms: int | None = None
    not_before_ms: Instant | None = None
    description: str | None = None
    duration_s: int | None = None
    lasts_s: int | None = None
    """How long it stays Started in a rehearsal; None means as long as the impact takes."""
    already_happened: bool = False
    """A failure that nobody could announce: the event appears as Started."""


class Operate(Struct, frozen=True, kw_only=True):
    """Do to an instance what its owner asks for: restart it, redeploy it, delete it and so on."""

    event_id: EventId
    kind: OperationKind
    instance: InstanceName


class OperateAll(Struct, frozen=True, kw_only=True):
    """Do the same operation to several instances, with an event each; all of them or none."""

    kind: OperationKind
    targets: tuple[tuple[EventId, InstanceName], ...]


class Approve(Struct, frozen=True, kw_only=True):
    event_id: EventId
    by: Actor


class ReportSeen(Struct, frozen=True, kw_only=True):
    """An instance was shown these events. Only the first sight of each counts."""

    event_ids: tuple[EventId, ...]
    instance: InstanceName


class ReportDrained(Struct, frozen=True, kw_only=True):
    """An instance of the event is ready for it. This is no approval, because others may not be
    ready.
    """

    event_id: EventId
    instance: InstanceName


class Cancel(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str = ""


class Postpone(Struct, frozen=True, kw_only=True):
    """Cancel the event and announce another in its place, because NotBefore never moves."""

    event_id: EventId
    new_event_id: EventId
    not_before_ms: Instant


class Activate(Struct, frozen=True, kw_only=True):
    """An instance of the scope has asked for the document."""


class BeginAnew(Struct, frozen=True, kw_only=True):
    """Begin a new activation, whose documents count from 1 again.

    It is needed when instances were shown documents that the store has lost, so that no number of
    this activation is safe. If several callers ask for it, it happens once.
    """

    activated_ms: Instant
    """The activation that is stored. If it is another by now, somebody has begun anew already."""
    served_ms: Instant
    """The new activation must be later than this, the newest that instances were shown."""
    reason: str


class Tick(Struct, frozen=True, kw_only=True):
    """Time has passed, so do whatever is due."""


class ReportDone(Struct, frozen=True, kw_only=True):
    """The driver says that the impact is over. It is believed whatever the attempt is, because all
    attempts share one key.
    """

    event_id: EventId


class ReportFailure(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    reason: str


class RenewLease(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    node: NodeId


class Release(Struct, frozen=True, kw_only=True):
    """A node that stops gives its work back, so that the next node need not wait for the lease to
    end.
    """

    event_id: EventId
    attempt: int
    node: NodeId


class AddInstances(Struct, frozen=True, kw_only=True):
    instances: tuple[Instance, ...]


class ChangeModel(Struct, frozen=True, kw_only=True):
    """Change the whole model of a scale set. Existing instances keep theirs until they are
    upgraded.
    """

    terminate_notice_ms: int | None
    reimage_notice_ms: int | None = None
    profile: str = ""


class UpgradeInstances(Struct, frozen=True, kw_only=True):
    names: tuple[InstanceName, ...]


class ChangePolicy(Struct, frozen=True, kw_only=True):
    policy: Policy


class Declare(Struct, frozen=True, kw_only=True):
    """Make the scope what this roster says: add, change and remove instances, and change the rules.

    An instance that has an event pending is removed only by force, which cancels the event. One
    that is due a Terminate event stays until its Terminate is over.
    """

    roster: Roster
    force: bool = False
    before: Roster | None = None
    """The roster that the caller saw; the command is refused if it has changed since."""
    terminates: Mapping[InstanceName, EventId] = {}
    """The id of the Terminate event for each instance that may need one to leave."""
    without_notice: frozenset[InstanceName] = frozenset()
    """The instances that are removed at once although due a Terminate, because somebody named
    them."""


class ReportPower(Struct, frozen=True, kw_only=True):
    instance: InstanceName
    power: Power


RosterCommand = AddInstances | ChangeModel | UpgradeInstances | ChangePolicy | ReportPower | Declare
"""A command that changes the instances or the rules of the scope."""
Command = (
    Schedule
    | Operate
    | OperateAll
    | Approve
    | ReportDrained
    | ReportSeen
    | Cancel
    | Postpone
    | Activate
    | BeginAnew
    | Tick
    | ReportDone
    | ReportFailure
    | RenewLease
    | Release
    | RosterCommand
)
