"""This module makes new events from commands. It raises Refused if a command breaks a rule."""

import re
from collections.abc import Mapping

from fairwarning.core import notice
from fairwarning.core.commands import Operate, Postpone, Schedule
from fairwarning.core.instants import Instant, later, to_whole_second
from fairwarning.core.limits import SCOPE_EVENTS_MAX, refuse_description, refuse_duration
from fairwarning.core.model import (
    ANNOUNCED_TYPES,
    Event,
    EventId,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Priority,
    Scope,
    ScopeId,
    Source,
)
from fairwarning.core.refusals import Code, Refused

_EVENT_ID = re.compile(r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}")
_MAINTENANCE_TYPES = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})
_TYPE_OF: dict[OperationKind, EventType] = {
    OperationKind.RESTART: EventType.REBOOT,
    OperationKind.REDEPLOY: EventType.REDEPLOY,
    OperationKind.REIMAGE: EventType.REBOOT,
    OperationKind.DELETE: EventType.TERMINATE,
    OperationKind.EVICT: EventType.PREEMPT,
    OperationKind.START: EventType.POWER,
    OperationKind.STOP: EventType.POWER,
    OperationKind.DEALLOCATE: EventType.POWER,
}


def find_instance(scope: Scope, name: InstanceName) -> Instance:
    instance = scope.roster.instances.get(name)
    if instance is None:
        raise Refused(
            Code.UNKNOWN_INSTANCE,
            f"scope {scope.id} has no instance {name!r}; `fairwarning fleet show` lists them",
        )
    if not instance.is_live:
        raise deleted_instance(scope.id, name)
    return instance


def deleted_instance(scope_id: ScopeId, name: InstanceName) -> Refused:
    return Refused(
        Code.INSTANCE_DELETED,
        f"instance {name!r} of scope {scope_id} was deleted; choose one that still exists",
    )


def scheduled_event(scope: Scope, command: Schedule, now: Instant) -> Event:
    """Return the platform event that the command asks for. Raises Refused if it breaks a rule."""
    instances = _targets(scope, command)
    _refuse_type(scope, command.type, instances)
    _refuse_pending(scope, command.type, command.targets)
    happened = command.already_happened
    description = command.description
    if description is None:
        usual = MAINTENANCE if command.type in _MAINTENANCE_TYPES else ""
        description = ALREADY_HAPPENED if happened else usual
    duration_s = command.duration_s
    if duration_s is None:
        duration_s = PLATFORM_DURATION_S.get(command.type, -1)
    refuse_description(description)
    refuse_duration(duration_s)
    refuse_duration(command.lasts_s or 0)
    notice_ms = command.notice_ms
    if notice_ms is None:
        notice_ms = notice.scheduled_notice_ms(scope.roster, command.type, instances)
    start = (
        to_whole_second(now)
        if happened
        else notice.not_before(
            scope.roster,
            command.type,
            now,
            notice_ms=notice_ms,
            not_before_ms=command.not_before_ms,
        )
    )
    return Event(
        id=_new_id(scope, command.event_id),
        type=command.type,
        source=Source.PLATFORM,
        phase=Phase.SCHEDULED,
        resources=command.targets,
        update_domain=instances[0].update_domain,
        created_ms=now,
        not_before_ms=start,
        description=description,
        duration_s=duration_s,
        lasts_s=command.lasts_s,
    )


def operation_event(scope: Scope, command: Operate, now: Instant) -> Event:
    """Return the event of a user operation. Raises Refused if it breaks a rule. The event is not
    announced if the scope is not activated or the operation needs no notice.
    """
    instance = find_instance(scope, command.instance)
    event_type = _TYPE_OF[command.kind]
    if command.kind is OperationKind.EVICT:
        _refuse_not_spot(instance)
    _refuse_pending(scope, event_type, (command.instance,))
    announced = scope.is_activated and _is_announced(scope, command.kind, instance)
    start = now
    if announced:
        notice_ms = notice.operation_notice_ms(scope.roster, command.kind, event_type, instance)
        start = to_whole_second(later(now, notice_ms))
    done = _PARTICIPLES.get(command.kind)
    return Event(
        id=_new_id(scope, command.event_id),
        type=event_type,
        # In real answers of Azure the source of an eviction is Platform, even of a simulated one.
        source=Source.PLATFORM if command.kind is OperationKind.EVICT else Source.USER,
        phase=Phase.SCHEDULED,
        resources=(command.instance,),
        update_domain=instance.update_domain,
        created_ms=now,
        not_before_ms=start,
        description=REQUESTED.format(done) if done else "",
        operation=command.kind,
        announced=announced,
    )


def postponed_event(scope: Scope, event: Event, command: Postpone, now: Instant) -> Event:
    if event.source is not Source.PLATFORM or event.type not in _MAINTENANCE_TYPES:
        raise Refused(
            Code.NOT_POSTPONABLE,
            f"{event.type} {event.id} by {event.source} cannot be postponed; cancel it instead",
        )
    start = notice.not_before(
        scope.roster, event.type, now, notice_ms=None, not_before_ms=command.not_before_ms
    )
    return Event(
        id=_new_id(scope, command.new_event_id),
        type=event.type,
        source=event.source,
        phase=Phase.SCHEDULED,
        resources=tuple(name for name in event.resources if scope.roster.has_live(name)),
        update_domain=event.update_domain,
        created_ms=now,
        not_before_ms=start,
        description=event.description,
        duration_s=event.duration_s,
        lasts_s=event.lasts_s,
    )


def _is_announced(scope: Scope, kind: OperationKind, instance: Instance) -> bool:
    """Return whether the operation is announced. A delete or a reimage needs a notice for that."""
    match kind:
        case OperationKind.DELETE:
            return notice.has_terminate_notice(scope.roster, instance)
        case OperationKind.REIMAGE:
            return instance.model.reimage_notice_ms is not None
        case OperationKind.START | OperationKind.STOP | OperationKind.DEALLOCATE:
            return False
        case OperationKind.RESTART | OperationKind.REDEPLOY | OperationKind.EVICT:
            return True


def _targets(scope: Scope, command: Schedule) -> tuple[Instance, ...]:
    if not command.targets:
        raise Refused(Code.NO_TARGET, "an event needs at least one instance; name one")
    if len(set(command.targets)) != len(command.targets):
        raise Refused(Code.NO_TARGET, "an instance is named twice; name each once")
    instances = tuple(find_instance(scope, name) for name in command.targets)
    domains = sorted({each.update_domain for each in instances})
    if len(domains) > 1:
        raise Refused(
            Code.SPANS_UPDATE_DOMAINS,
            f"the instances are in update domains {', '.join(map(str, domains))} and an event "
            "affects one; schedule one event for each",
        )
    return instances


def _refuse_type(scope: Scope, event_type: EventType, instances: tuple[Instance, ...]) -> None:
    if event_type not in ANNOUNCED_TYPES:
        raise Refused(
            Code.NOT_SCHEDULABLE,
            f"{event_type} cannot be scheduled; start, stop or deallocate the instance instead",
        )
    if scope.roster.test:
        return
    if event_type is EventType.TERMINATE:
        raise Refused(
            Code.TERMINATE_BY_DELETE_ONLY,
            "Terminate comes from deleting an instance of a scale set; delete it instead, or mark "
            "the fleet `test = true` to rehearse",
        )
    if event_type is EventType.PREEMPT:
        for instance in instances:
            _refuse_not_spot(instance)


def _refuse_not_spot(instance: Instance) -> None:
    if instance.priority is not Priority.SPOT:
        raise Refused(
            Code.NOT_SPOT,
            f"instance {instance.name!r} is {instance.priority}, and only Spot instances are "
            "evicted; choose a Spot instance",
        )


def _refuse_pending(scope: Scope, event_type: EventType, targets: tuple[InstanceName, ...]) -> None:
    for event in scope.unfinished:
        both = set(event.resources).intersection(targets)
        if event.type is event_type and both:
            raise Refused(
                Code.ALREADY_PENDING,
                f"instance {min(both)!r} already has a {event_type} pending, event {event.id}; "
                "wait for it to end, or cancel it first",
            )


def _new_id(scope: Scope, event_id: EventId) -> EventId:
    if not _EVENT_ID.fullmatch(event_id):
        raise Refused(
            Code.EVENT_ID_INVALID,
            f"{event_id!r} is no event id; use an upper-case GUID, or leave it out to get one",
        )
    if event_id in scope.events:
        refuse_used_id(event_id)
    if len(scope.events) >= SCOPE_EVENTS_MAX:
        raise Refused(
            Code.TOO_MANY_EVENTS,
            f"scope {scope.id} holds {SCOPE_EVENTS_MAX} events already; wait until some have ended",
        )
    return event_id


def refuse_used_id(event_id: EventId) -> None:
    raise Refused(
        Code.EVENT_ID_USED,
        f"event id {event_id} was used before, and an event happens once; take a new id",
    )


# The texts of Azure for Description, word for word where they are known.
MAINTENANCE = "Host server is undergoing maintenance."
ALREADY_HAPPENED = "Virtual machine has encountered a failure."
REQUESTED = "Virtual machine is going to be {} as requested by authorized user."
_PARTICIPLES: Mapping[OperationKind, str] = {
    OperationKind.RESTART: "restarted",
    OperationKind.REDEPLOY: "redeployed",
    OperationKind.REIMAGE: "reimaged",
}
"""The operations that Azure describes. The description of any other event is empty."""
PLATFORM_DURATION_S: Mapping[EventType, int] = {EventType.FREEZE: 5}
"""The usual pause of a memory-preserving update. For other types the duration is unknown."""
