"""A command asks a scope for something. It is decided alone, for one scope, at one instant.

The caller puts new ids into the command, so that a repeated command is recognised as the same one.
"""

from collections.abc import Mapping

from msgspec import Struct

from fairwarning.core.hooks import HookStage
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
    """Announce a platform event, with the minimum notice unless one of the two times is given."""

    event_id: EventId
    type: EventType
    targets: tuple[InstanceName, ...]
    notice_ms: int | None = None
    not_before_ms: Instant | None = None
    description: str | None = None
    duration_s: int | None = None
    lasts_s: int | None = None
    """How long the event stays Started in a rehearsal. None means as long as the impact takes."""
    already_happened: bool = False
    """Whether this is a failure that could not be announced. The event then starts at once."""


class Operate(Struct, frozen=True, kw_only=True):
    """Do to an instance what its owner asks for, such as a restart, a redeployment or a delete."""

    event_id: EventId
    kind: OperationKind
    instance: InstanceName


class OperateAll(Struct, frozen=True, kw_only=True):
    """Do one operation to several instances, with an event for each. If one is refused, all are."""

    kind: OperationKind
    targets: tuple[tuple[EventId, InstanceName], ...]


class Approve(Struct, frozen=True, kw_only=True):
    event_id: EventId
    by: Actor


class ApproveAll(Struct, frozen=True, kw_only=True):
    """Approve several events at once. Those that are over, or forgotten, are left out."""

    event_ids: tuple[EventId, ...]
    by: Actor


class ReportSeen(Struct, frozen=True, kw_only=True):
    """An instance was shown these events. Only the first time counts for each event."""

    event_ids: tuple[EventId, ...]
    instance: InstanceName


class ReportDrained(Struct, frozen=True, kw_only=True):
    """An instance is ready for the event. This is no approval, as others may not be ready."""

    event_id: EventId
    instance: InstanceName


class Cancel(Struct, frozen=True, kw_only=True):
    event_id: EventId
    reason: str = ""


class Postpone(Struct, frozen=True, kw_only=True):
    """Replace the event by a new one, because the NotBefore of an event never changes."""

    event_id: EventId
    new_event_id: EventId
    not_before_ms: Instant


class Activate(Struct, frozen=True, kw_only=True):
    """An instance of the scope has asked for the document."""


class BeginAnew(Struct, frozen=True, kw_only=True):
    """Begin a new activation, whose documents are numbered from 1 again.

    The store has lost documents that instances have seen, so a number of the old activation could
    be used twice. If several callers send this command, only the first has an effect.
    """

    activated_ms: Instant
    """The activation to replace. If the store has another one by now, nothing changes."""
    served_ms: Instant
    """The newest activation that instances have seen. The new activation is later than this."""
    reason: str


class Tick(Struct, frozen=True, kw_only=True):
    """Nobody asks for anything, but time has passed. The scope does everything that is due."""


class ReportDone(Struct, frozen=True, kw_only=True):
    """The driver says that the impact is over. Any attempt may say so: all have the same key."""

    event_id: EventId


class ReportFailure(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    reason: str


class ReportHook(Struct, frozen=True, kw_only=True):
    """A hook has ended. Only the node that has the work may report this, and it reports hooks in
    their order.
    """

    event_id: EventId
    attempt: int
    node: NodeId
    stage: HookStage
    number: int
    """The place of the hook in the list of its stage, from 1 on."""
    is_done: bool
    """Whether the hook succeeded in its last try."""
    tries: int
    took_ms: int
    result: str
    """How the last try ended, such as `exit code 1`."""
    output: str = ""


class RenewLease(Struct, frozen=True, kw_only=True):
    event_id: EventId
    attempt: int
    node: NodeId


class Release(Struct, frozen=True, kw_only=True):
    """A node that stops gives its work back, so that nobody waits until the lease ends."""

    event_id: EventId
    attempt: int
    node: NodeId


class AddInstances(Struct, frozen=True, kw_only=True):
    instances: tuple[Instance, ...]


class ChangeModel(Struct, frozen=True, kw_only=True):
    """Replace the model of a scale set. Instances keep their own model until they are upgraded."""

    terminate_notice_ms: int | None
    reimage_notice_ms: int | None = None
    profile: str = ""


class UpgradeInstances(Struct, frozen=True, kw_only=True):
    names: tuple[InstanceName, ...]


class ChangePolicy(Struct, frozen=True, kw_only=True):
    policy: Policy


class Declare(Struct, frozen=True, kw_only=True):
    """Make the scope equal to this roster: add, change and remove instances, and change the rules.

    An instance with a pending event is removed only with `force`, which cancels the event. An
    instance that is due a Terminate event stays until that event is over.
    """

    roster: Roster
    force: bool = False
    before: Roster | None = None
    """The roster that the caller saw. If the roster has changed since, the command is refused."""
    terminates: Mapping[InstanceName, EventId] = {}
    """The id of the Terminate event for each instance that may need one when it is removed."""
    without_notice: frozenset[InstanceName] = frozenset()
    """The instances that the operator wants to remove at once, without their Terminate event."""


class ReportPower(Struct, frozen=True, kw_only=True):
    instance: InstanceName
    power: Power


RosterCommand = AddInstances | ChangeModel | UpgradeInstances | ChangePolicy | ReportPower | Declare
"""A command that changes the instances or the rules of the scope."""
Command = (
    Schedule | Operate | OperateAll | Approve | ApproveAll | ReportDrained | ReportSeen | Cancel |
    Postpone | Activate | BeginAnew | Tick | ReportDone | ReportFailure | ReportHook | RenewLease |
    Release |
    RosterCommand
)  # fmt: skip
