"""The core's values in the shapes of the API. Pure."""

from collections.abc import Iterable

import msgspec

from fairwarning.control import shapes
from fairwarning.core.discretion import without_secrets
from fairwarning.core.instants import Instant, format_iso_duration, format_rfc3339
from fairwarning.core.model import Event, Instance, Scope, ScopeId
from fairwarning.core.sentences import sentence
from fairwarning.engine.ports import Entry


def event_of(scope_id: ScopeId, event: Event, timeline: Iterable[Entry] = ()) -> shapes.Event:
    return shapes.Event(
        id=event.id,
        scope=scope_id,
        type=event.type,
        phase=event.phase,
        source=event.source,
        resources=list(event.resources),
        update_domain=event.update_domain,
        not_before=format_rfc3339(event.not_before_ms),
        description=event.description,
        duration_seconds=event.duration_s,
        created=format_rfc3339(event.created_ms),
        started=instant_of(event.started_ms),
        ended=instant_of(event.ended_ms),
        outcome=event.outcome,
        start_cause=event.start_cause,
        operation=event.operation,
        announced=event.announced,
        replaced_by=event.replaced_by,
        approvals=[
            shapes.Approval(by=str(each.by), at=format_rfc3339(each.at_ms))
            for each in event.approvals
        ],
        timeline=[entry_of(each) for each in timeline],
    )


def entry_of(entry: Entry) -> shapes.Entry:
    transition = entry.transition
    return shapes.Entry(
        position=entry.position,
        at=format_rfc3339(entry.at_ms),
        scope=entry.scope_id,
        event=getattr(transition, "event_id", None),
        kind=type(transition).__name__,
        by=str(entry.by),
        why=entry.why,
        text=sentence(entry),
        data=msgspec.to_builtins(without_secrets(transition)),
    )


def scope_of(scope: Scope) -> shapes.Scope:
    roster = scope.roster
    notice_ms = roster.model.terminate_notice_ms
    return shapes.Scope(
        id=scope.id,
        kind=roster.kind,
        name=roster.resource,
        subscription=roster.subscription,
        resource_group=roster.resource_group,
        location=roster.location,
        test=roster.test,
        driver=roster.driver,
        origin=roster.origin,
        update_domains=roster.update_domains,
        fault_domains=roster.fault_domains,
        activated=scope.is_activated,
        incarnation=scope.incarnation,
        last_seen=instant_of(scope.last_seen_ms),
        terminate_notice=None if notice_ms is None else format_iso_duration(notice_ms),
        pending_events=len(scope.unfinished),
        instances=[instance_of(scope, each) for each in roster.live],
    )


def instance_of(scope: Scope, instance: Instance) -> shapes.Instance:
    return shapes.Instance(
        name=instance.name,
        update_domain=instance.update_domain,
        fault_domain=instance.fault_domain,
        addresses=list(instance.addresses),
        tags=dict(instance.tags),
        priority=instance.priority,
        power=instance.power,
        latest_model_applied=scope.roster.latest_model_applied(instance),
    )


def detail_of(scope: Scope, instance: Instance) -> shapes.InstanceDetail:
    events = [each for each in scope.unfinished if instance.name in each.resources]
    return shapes.InstanceDetail(
        **msgspec.structs.asdict(instance_of(scope, instance)),
        scope=scope.id,
        events=[event_of(scope.id, each) for each in events],
    )


def instant_of(instant: Instant | None) -> str | None:
    return None if instant is None else format_rfc3339(instant)
