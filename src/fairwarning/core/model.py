"""This module has the values that the rules work on: scope, roster, instance and event.

All values are frozen. A change makes a new value, so a reader can keep the old one.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from fairwarning.core.hooks import Hooks, HookStage
from fairwarning.core.instants import Instant

ScopeId = NewType("ScopeId", str)
EventId = NewType("EventId", str)
InstanceName = NewType("InstanceName", str)
NodeId = NewType("NodeId", str)
"""The id of a server of Fairwarning."""


class EventType(StrEnum):
    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    POWER = "Power"
    """A start, stop or deallocation. Azure has no such type, so no instance is told of it."""


ANNOUNCED_TYPES = tuple(each for each in EventType if each is not EventType.POWER)
"""The types of Azure. They can be scheduled, and instances can see them."""


class Source(StrEnum):
    PLATFORM = "Platform"
    USER = "User"


class Phase(StrEnum):
    SCHEDULED = "scheduled"
    STARTED = "started"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class StartCause(StrEnum):
    APPROVED = "approved"
    DUE = "due"
    AUTOMATIC = "automatic"
    """The event started because a policy approved it, or because no instance had to be told."""
    ALREADY_HAPPENED = "already-happened"


class OperationKind(StrEnum):
    RESTART = "restart"
    REDEPLOY = "redeploy"
    REIMAGE = "reimage"
    DELETE = "delete"
    EVICT = "evict"
    START = "start"
    STOP = "stop"
    DEALLOCATE = "deallocate"


class ScopeKind(StrEnum):
    VM = "vm"
    AVAILABILITY_SET = "availability-set"
    SCALE_SET = "scale-set"
    CLOUD_SERVICE = "cloud-service"


class Priority(StrEnum):
    REGULAR = "Regular"
    SPOT = "Spot"


class EvictionPolicy(StrEnum):
    DEALLOCATE = "Deallocate"
    DELETE = "Delete"


class Power(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DEALLOCATED = "deallocated"


class Actor(Struct, frozen=True, kw_only=True):
    """The one who made a change: an instance, an operator, a policy or the engine."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ENGINE = Actor(kind="engine", name="engine")


def instance_actor(name: InstanceName) -> Actor:
    return Actor(kind="instance", name=name)


def operator_actor(name: str) -> Actor:
    return Actor(kind="operator", name=name)


def policy_actor(name: str) -> Actor:
    return Actor(kind="policy", name=name)


class Model(Struct, frozen=True, kw_only=True):
    """The settings of a scale set for new instances. An instance keeps its model until upgraded."""

    generation: int = 1
    terminate_notice_ms: int | None = None
    """How long before a delete its Terminate event is announced. None means no such event."""
    reimage_notice_ms: int | None = None
    """How long before a reimage its event is announced. None means that it is not announced."""
    profile: str = ""
    """A text that changes with any other setting, so that each change counts as a new model."""


class Policy(Struct, frozen=True, kw_only=True):
    """What the owner of a scope approves in advance, and the minimum notice of each type."""

    approve_user_reboot: bool = False
    approve_user_redeploy: bool = False
    approve_all_instances_down: bool = True
    notice_ms: Mapping[EventType, int] = {}
    """The minimum notice of each event type for which this policy replaces the default."""


class Protection(StrEnum):
    """What an instance of a scale set is protected from. Both values include scale-in."""

    SCALE_IN = "scale-in"
    SET_ACTIONS = "scale-set-actions"


class Instance(Struct, frozen=True, kw_only=True):
    name: InstanceName
    update_domain: int = 0
    fault_domain: int = 0
    addresses: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}
    priority: Priority = Priority.REGULAR
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE
    power: Power = Power.RUNNING
    model: Model = Model()
    handle: str = ""
    """The name of the instance in the driver. Empty means the same as `name`."""
    deleted_ms: Instant | None = None
    protected_from: tuple[Protection, ...] = ()

    @property
    def is_live(self) -> bool:
        return self.deleted_ms is None


class Roster(Struct, frozen=True, kw_only=True):
    """The instances of a scope and its rules. It changes rarely, and is stored separately."""

    kind: ScopeKind
    subscription: str
    resource_group: str
    resource: str
    """The VM, availability set, scale set or cloud service that this scope belongs to."""
    location: str = "local"
    test: bool = False
    driver: str = "simulated"
    driver_settings: Mapping[str, str] = {}
    """The settings of the driver. Each driver documents its own settings."""
    hooks: Hooks = Hooks()
    """What is called before and after each impact."""
    origin: str = "api"
    """Who declared the roster. A fleet file may remove it only if this is `file` or `starter`."""
    update_domains: int = 1
    fault_domains: int = 1
    policy: Policy = Policy()
    model: Model = Model()
    is_numbered: bool = False
    """Whether this is a uniform scale set, whose instances have numbers that are used once."""
    next_number: int = 0
    """The number of the next instance. It begins at 0 again if a removed set is declared again."""
    is_removed: bool = False
    """Whether the owner removed the whole resource and added nothing since. Its last instances may
    still be leaving; if one of them stays after all, this is false again. A scale set is removed
    when all its placement groups are.
    """
    computer_name_prefix: str = ""
    """The first part of the computer names in a scale set. Empty means the name of the resource."""
    instances: Mapping[InstanceName, Instance] = {}

    def latest_model_applied(self, instance: Instance) -> bool:
        return instance.model == self.model

    def has_live(self, name: InstanceName) -> bool:
        return name in self.instances and self.instances[name].is_live

    @property
    def live(self) -> tuple[Instance, ...]:
        return tuple([each for each in self.instances.values() if each.is_live])

    @property
    def is_gone(self) -> bool:
        """Whether the resource was removed and has no live instance left."""
        return self.is_removed and not self.live

    @property
    def is_standing(self) -> bool:
        """Whether the resource is there: it has a live instance, or is a scale set that nobody
        removed.
        """
        return bool(self.live) or (self.kind is ScopeKind.SCALE_SET and not self.is_removed)


class Approval(Struct, frozen=True, kw_only=True):
    by: Actor
    at_ms: Instant


class Sight(Struct, frozen=True, kw_only=True):
    """The instance that was the first to be shown an event, and when."""

    by: InstanceName
    at_ms: Instant


class HookProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many hooks of an event have ended, and how its impact went if it is over."""

    before: int = 0
    after: int = 0
    ready_ms: Instant | None = None
    """When the last hook before the impact ended."""
    outcome: Phase | None = None
    """COMPLETED or FAILED if the impact is over and hooks after it are to run. Else None."""
    reason: str = ""

    def counted(self, stage: HookStage) -> int:
        return self.before if stage is HookStage.BEFORE else self.after


class Work(Struct, frozen=True, kw_only=True):
    """The driver work of a started event: the attempt, the node that has it, and until when."""

    attempt: int = 0
    failures: int = 0
    node: NodeId | None = None
    """The node that has the work. None means that any node may take it from `ready_ms` on."""
    ready_ms: Instant
    lease_until_ms: Instant | None = None
    attempt_until_ms: Instant | None = None
    hooks: HookProgress = HookProgress()


class Event(Struct, frozen=True, kw_only=True):
    id: EventId
    type: EventType
    source: Source
    phase: Phase
    resources: tuple[InstanceName, ...]
    update_domain: int
    created_ms: Instant
    not_before_ms: Instant
    description: str = ""
    duration_s: int = -1
    lasts_s: int | None = None
    """How long the simulated driver keeps the event Started. None means its usual time."""
    operation: OperationKind | None = None
    announced: bool = True
    """Whether instances are told of the event. If not, it starts at once."""
    approvals: tuple[Approval, ...] = ()
    sight: Sight | None = None
    """The first instance that was shown the event. None means that no instance was shown it yet."""
    drained: tuple[InstanceName, ...] = ()
    """The instances that have reported to be ready. Azure has no such reports."""
    start_cause: StartCause | None = None
    started_ms: Instant | None = None
    ended_ms: Instant | None = None
    outcome: str = ""
    replaced_by: EventId | None = None
    work: Work | None = None

    @property
    def takes_s(self) -> int:
        """How long the event is expected to take. It is 0 if the event does not say."""
        return max(self.duration_s, self.lasts_s or 0, 0)

    @property
    def is_finished(self) -> bool:
        return self.ended_ms is not None

    @property
    def is_approved(self) -> bool:
        return bool(self.approvals)


class Scope(Struct, frozen=True, kw_only=True):
    """A group of instances and their events, which change together in one transaction."""

    id: ScopeId
    roster: Roster
    revision: int = 0
    incarnation: int = 0
    """The number of the document. It is 0 while the scope is not activated."""
    activated_ms: Instant | None = None
    last_seen_ms: Instant | None = None
    events: Mapping[EventId, Event] = {}

    @property
    def is_activated(self) -> bool:
        return self.activated_ms is not None

    @property
    def unfinished(self) -> tuple[Event, ...]:
        return tuple([each for each in self.events.values() if each.ended_ms is None])

    def in_phase(self, phase: Phase) -> tuple[Event, ...]:
        return tuple([each for each in self.events.values() if each.phase is phase])
