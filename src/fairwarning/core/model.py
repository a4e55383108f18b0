"""The values that the rules are about: scope, roster, instance, event. The rules are elsewhere.

Everything is frozen. A change makes a new value, so a reader can keep the old one.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from fairwarning.core.instants import Instant

ScopeId = NewType("ScopeId", str)
EventId = NewType("EventId", str)
InstanceName = NewType("InstanceName", str)
NodeId = NewType("NodeId", str)
"""One of our own servers."""


class EventType(StrEnum):
    FREEZE = "Freeze"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    POWER = "Power"
    """A start, stop or deallocation, a type of our own. It runs unannounced and is in no
    document."""


ANNOUNCED_TYPES = tuple(each for each in EventType if each is not EventType.POWER)
"""The types that Azure knows: they can be scheduled, and instances can see them."""


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
    """Policy approved it, or the scope is not activated and nobody was to be asked."""
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
    """The one who asked: an instance, a person, a policy, or the engine itself."""

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
    """What a scale set says that its instances are. An instance keeps the model that it was made
    with.
    """

    generation: int = 1
    terminate_notice_ms: int | None = None
    """How long before a delete it is announced; None means that there are no Terminate events."""
    reimage_notice_ms: int | None = None
    """How long before a reimage it is announced; None means that it is not."""
    profile: str = ""
    """It changes with everything else of the model, so that any change counts as a new model."""


class Policy(Struct, frozen=True, kw_only=True):
    """What the owner of a scope has agreed to in advance, and how much notice is due."""

    approve_user_reboot: bool = False
    approve_user_redeploy: bool = False
    approve_all_instances_down: bool = True
    notice_ms: Mapping[EventType, int] = {}
    """Overrides of the minimum notice, by type."""


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
    """What the driver calls the instance; empty means its name."""
    deleted_ms: Instant | None = None

    @property
    def is_live(self) -> bool:
        return self.deleted_ms is None


class Roster(Struct, frozen=True, kw_only=True):
    """The instances of a scope and its rules. It changes seldom, and is stored apart."""

    kind: ScopeKind
    subscription: str
    resource_group: str
    resource: str
    """The VM, availability set, scale set or cloud service that this scope belongs to."""
    location: str = "local"
    test: bool = False
    driver: str = "simulated"
    driver_settings: Mapping[str, str] = {}
    """What this driver needs to know beyond its name; each driver documents its own."""
    origin: str = "api"
    """Who declared it: `file` and `starter` are the fleet file's to remove, others are not."""
    update_domains: int = 1
    fault_domains: int = 1
    policy: Policy = Policy()
    model: Model = Model()
    is_numbered: bool = False
    """Whether it is a uniform scale set, whose instances have numbers; none is given out twice."""
    next_number: int = 0
    """The number of the next instance. A set that was removed and is declared again begins at 0."""
    is_removed: bool = False
    """Whether its owner removed all of it and nothing was added since. Instances that are still
    in it leave; if one does not leave after all (the event was cancelled, or failed), this is
    false again. A scale set is removed when all its placement groups are."""
    computer_name_prefix: str = ""
    """What the computer names in a scale set begin with; empty means the resource's name."""
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
        """Whether it was removed and has nobody left, so that declaring it again makes
        a new one.
        """
        return self.is_removed and not self.live


class Approval(Struct, frozen=True, kw_only=True):
    by: Actor
    at_ms: Instant


class Sight(Struct, frozen=True, kw_only=True):
    """The instance that was the first to be shown an event, and when."""

    by: InstanceName
    at_ms: Instant


class Work(Struct, frozen=True, kw_only=True):
    """The driver's work on a started event: which attempt it is, which node has it,
    and until when.
    """

    attempt: int = 0
    failures: int = 0
    node: NodeId | None = None
    """The node that has the work; None means that the next node may take it from `ready_ms` on."""
    ready_ms: Instant
    lease_until_ms: Instant | None = None
    attempt_until_ms: Instant | None = None


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
    """How long the simulated driver keeps it Started; None means as long as the impact takes."""
    operation: OperationKind | None = None
    announced: bool = True
    """False for a user operation that no instance is told of: it runs at once, unseen."""
    approvals: tuple[Approval, ...] = ()
    sight: Sight | None = None
    """The first instance that was shown it; None means that none was yet."""
    drained: tuple[InstanceName, ...] = ()
    """The instances that have said that they are ready. Azure has no such thing; it is our
    extension."""
    start_cause: StartCause | None = None
    started_ms: Instant | None = None
    ended_ms: Instant | None = None
    outcome: str = ""
    replaced_by: EventId | None = None
    work: Work | None = None

    @property
    def takes_s(self) -> int:
        """How long the event is under way, as far as it says."""
        return max(self.duration_s, self.lasts_s or 0, 0)

    @property
    def is_finished(self) -> bool:
        return self.ended_ms is not None

    @property
    def is_approved(self) -> bool:
        return bool(self.approvals)


class Scope(Struct, frozen=True, kw_only=True):
    """A scope is the unit of consistency: all of it changes in one transaction."""

    id: ScopeId
    roster: Roster
    revision: int = 0
    incarnation: int = 0
    """The number of the document; 0 while the scope is not activated."""
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
