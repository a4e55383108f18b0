"""The state of the world as the checkers know it.

It is built only from the journal, as an outside observer would do, without the core's rules.
"""

from dataclasses import dataclass, field, replace

from fairwarning.core import transitions
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    Instance,
    InstanceName,
    Model,
    OperationKind,
    Policy,
    Roster,
    ScopeId,
)
from fairwarning.engine.protocols import START, Entry, Position

_POWER_AFTER = {
    OperationKind.START: "running",
    OperationKind.STOP: "stopped",
    OperationKind.DEALLOCATE: "deallocated",
}


@dataclass(slots=True)
class ObservedEvent:
    event: Event
    born_ms: Instant
    approvals: list[Actor] = field(default_factory=list)
    started_ms: Instant | None = None
    ended_ms: Instant | None = None

    @property
    def is_waiting(self) -> bool:
        return self.started_ms is None and self.ended_ms is None

    @property
    def is_under_way(self) -> bool:
        return self.started_ms is not None and self.ended_ms is None


@dataclass(slots=True)
class ObservedScope:
    id: ScopeId
    policy: Policy
    test: bool
    is_scale_set: bool
    model: Model
    instances: dict[InstanceName, Instance] = field(default_factory=dict)
    models: dict[InstanceName, Model] = field(default_factory=dict)
    """The model of each instance, which may be older than that of the scope."""
    power: dict[InstanceName, str] = field(default_factory=dict)
    deleted: set[InstanceName] = field(default_factory=set)
    was_deleted: set[InstanceName] = field(default_factory=set)
    """All names that were ever deleted. An instance of that name may exist again."""
    events: dict[EventId, ObservedEvent] = field(default_factory=dict)
    is_activated: bool = False
    activated_ms: Instant = Instant(0)
    incarnation: int = 0

    def waiting(self) -> list[ObservedEvent]:
        return [each for each in self.events.values() if each.is_waiting]

    def under_way(self) -> list[ObservedEvent]:
        return [each for each in self.events.values() if each.is_under_way]

    def awaits(self, name: InstanceName) -> bool:
        """Returns whether an event that is not over affects this instance."""
        return any(
            each.ended_ms is None and name in each.event.resources for each in self.events.values()
        )

    def awaits_in_domain(self, name: InstanceName) -> bool:
        """Returns whether an event that is not over, except a delete, affects this instance."""
        return any(
            each.ended_ms is None and name in each.event.resources
            for each in self.events.values()
            if each.event.operation is not OperationKind.DELETE
        )

    def is_all_down(self) -> bool:
        live = [name for name in self.instances if name not in self.deleted]
        return bool(live) and all(self.power[name] != "running" for name in live)

    def copy(self) -> "ObservedScope":
        events = {
            id: replace(each, approvals=[*each.approvals]) for id, each in self.events.items()
        }
        return replace(
            self,
            instances={**self.instances},
            models={**self.models},
            power={**self.power},
            deleted={*self.deleted},
            was_deleted={*self.was_deleted},
            events=events,
        )


@dataclass(slots=True)
class ObservedWorld:
    """All that is known from the journal, up to the last entry that was read."""

    scopes: dict[ScopeId, ObservedScope] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    lines: dict[tuple[ScopeId, int], list[str]] = field(default_factory=dict)
    """The journal lines of each revision of a scope."""
    not_before: dict[str, str] = field(default_factory=dict)
    """The NotBefore that documents have shown for each event."""

    @property
    def position(self) -> Position:
        return self.entries[-1].position if self.entries else START

    def copy(self) -> "ObservedWorld":
        """Returns a copy, which is used again if the store is set back to this moment."""
        return ObservedWorld(
            scopes={id: each.copy() for id, each in self.scopes.items()},
            entries=[*self.entries],
            lines={key: [*lines] for key, lines in self.lines.items()},
            not_before={**self.not_before},
        )


def note(scope: ObservedScope, entry: Entry) -> None:
    transition = entry.transition
    match transition:
        case transitions.Scheduled(event=event):
            scope.events[event.id] = ObservedEvent(event, entry.at_ms)
        case transitions.Approved(event_id=event_id, by=by):
            scope.events[event_id].approvals.append(by)
        case transitions.Started(event_id=event_id):
            scope.events[event_id].started_ms = entry.at_ms
        case transitions.Completed(event_id=event_id):
            scope.events[event_id].ended_ms = entry.at_ms
            _carried_out(scope, scope.events[event_id].event)
        case transitions.Cancelled(event_id=event_id) | transitions.Failed(event_id=event_id):
            scope.events[event_id].ended_ms = entry.at_ms
        case transitions.Activated():
            scope.is_activated, scope.incarnation = True, 1
            scope.activated_ms = entry.at_ms
        case transitions.Deactivated():
            scope.is_activated, scope.incarnation = False, 0
        case transitions.DocumentChanged(incarnation=incarnation):
            scope.incarnation = incarnation
        case transitions.InstancesAdded(instances=instances):
            for instance in instances:
                scope.instances[instance.name] = instance
                scope.deleted.discard(instance.name)
                scope.models[instance.name] = instance.model
                scope.power[instance.name] = instance.power
        case transitions.InstanceDeleted(name=name):
            scope.deleted.add(name)
            scope.was_deleted.add(name)
        case transitions.PowerChanged(name=name, power=power):
            scope.power[name] = power
        case transitions.ModelChanged(model=model):
            scope.model = model
        case transitions.InstancesUpgraded(names=names):
            for name in names:
                scope.models[name] = scope.model
        case transitions.PolicyChanged(policy=policy):
            scope.policy = policy
        case transitions.RosterDeclared(roster=roster):
            _declared(scope, roster)
        case _:
            return


def _carried_out(scope: ObservedScope, event: Event) -> None:
    """Applies the effect of a completed operation on the instance."""
    for name in event.resources:
        if event.operation in _POWER_AFTER:
            scope.power[name] = _POWER_AFTER[event.operation]
        elif event.operation is OperationKind.REIMAGE:
            scope.models[name] = scope.model


def _declared(scope: ObservedScope, roster: Roster) -> None:
    """Applies a declaration. Instances that stay keep their power and their model."""
    scope.policy, scope.test = roster.policy, roster.test
    scope.model = roster.model
    for instance in roster.live:
        is_new = instance.name not in scope.instances or instance.name in scope.deleted
        scope.instances[instance.name] = instance
        if is_new:
            scope.deleted.discard(instance.name)
            scope.models[instance.name] = scope.model
            scope.power[instance.name] = "running"
