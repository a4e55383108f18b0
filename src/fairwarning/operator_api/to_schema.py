"""Converts values of the core to schemas of the API. Pure."""

from collections.abc import Iterable

import msgspec

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.hooks import Hook, Hooks, OnFailure
from fairwarning.core.instants import Instant, format_optional, format_rfc3339
from fairwarning.core.journal_text import sentence, without_secrets
from fairwarning.core.model import Event, Instance, Model, Policy, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.resources import Orchestration
from fairwarning.core.scale_sets import members
from fairwarning.core.transitions import kind_of
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Entry
from fairwarning.engine.scope_view import Member
from fairwarning.operator_api import schemas


def event_of(scope_id: ScopeId, event: Event, timeline: Iterable[Entry] = ()) -> schemas.Event:
    return schemas.Event(
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
        started=format_optional(event.started_ms),
        ended=format_optional(event.ended_ms),
        outcome=event.outcome,
        start_cause=event.start_cause,
        operation=event.operation,
        announced=event.announced,
        replaced_by=event.replaced_by,
        approvals=[
            schemas.Approval(by=str(each.by), at=format_rfc3339(each.at_ms))
            for each in event.approvals
        ],
        seen=None
        if event.sight is None
        else schemas.Sight(by=event.sight.by, at=format_rfc3339(event.sight.at_ms)),
        drained=list(event.drained),
        timeline=[entry_of(each) for each in timeline],
    )


def entry_of(entry: Entry) -> schemas.Entry:
    transition = entry.transition
    return schemas.Entry(
        position=entry.position,
        at=format_rfc3339(entry.at_ms),
        scope=entry.scope_id,
        event=getattr(transition, "event_id", None),
        kind=kind_of(transition),
        by=str(entry.by),
        why=entry.why,
        text=sentence(entry.transition),
        data=msgspec.to_builtins(without_secrets(transition)),
    )


def scope_of(scope: Scope, views: Views) -> schemas.Scope:
    roster = scope.roster
    return schemas.Scope(
        id=scope.id,
        kind=roster.kind,
        name=roster.resource,
        subscription=roster.subscription,
        resource_group=roster.resource_group,
        location=roster.location,
        test=roster.test,
        driver=roster.driver,
        hooks=_hooks(roster.hooks),
        origin=roster.origin,
        update_domains=roster.update_domains,
        fault_domains=roster.fault_domains,
        activated=scope.is_activated,
        incarnation=scope.incarnation,
        last_seen=format_optional(scope.last_seen_ms),
        terminate_notice=_duration(roster.model.terminate_notice_ms),
        orchestration=orchestration_of(roster),
        capacity=len(members([scope])),
        model=_model(roster.model),
        policy=_policy(roster.policy),
        pending_events=len(scope.unfinished),
        instances=[instance_of(scope, each, views) for each in roster.live],
    )


def orchestration_of(roster: Roster) -> Orchestration | None:
    if roster.kind is not ScopeKind.SCALE_SET:
        return None
    return Orchestration.UNIFORM if roster.is_numbered else Orchestration.FLEXIBLE


def _hooks(hooks: Hooks) -> schemas.Hooks:
    shown = hooks.without_secrets
    return schemas.Hooks(
        before=[_hook(each, each.on_failure) for each in shown.before],
        after=[_hook(each, None) for each in shown.after],
    )


def _hook(hook: Hook, on_failure: OnFailure | None) -> schemas.Hook:
    return schemas.Hook(
        name=hook.label,
        program=hook.run[0] if hook.run else None,
        url=hook.url or None,
        timeout=format_iso_duration(hook.timeout_ms),
        retries=hook.retries,
        pause=format_iso_duration(hook.pause_ms),
        on_failure=on_failure,
    )


def _model(model: Model) -> schemas.Model:
    return schemas.Model(
        generation=model.generation,
        terminate_notice=_duration(model.terminate_notice_ms),
        reimage_notice=_duration(model.reimage_notice_ms),
    )


def _policy(policy: Policy) -> schemas.Policy:
    return schemas.Policy(
        approve_user_reboot=policy.approve_user_reboot,
        approve_user_redeploy=policy.approve_user_redeploy,
        approve_all_instances_down=policy.approve_all_instances_down,
        notice={str(type): format_iso_duration(ms) for type, ms in policy.notice_ms.items()},
    )


def instance_of(scope: Scope, instance: Instance, views: Views) -> schemas.Instance:
    return schemas.Instance(
        name=instance.name,
        update_domain=instance.update_domain,
        fault_domain=instance.fault_domain,
        addresses=list(instance.addresses),
        tags=dict(instance.tags),
        priority=instance.priority,
        eviction=instance.eviction,
        power=instance.power,
        terminate_notice=_duration(instance.model.terminate_notice_ms),
        reimage_notice=_duration(instance.model.reimage_notice_ms),
        latest_model_applied=scope.roster.latest_model_applied(instance),
        protected_from=list(instance.protected_from),
        pending=[
            schemas.Pending(
                id=each.id,
                type=each.type,
                phase=each.phase,
                not_before=format_rfc3339(each.not_before_ms),
            )
            for each in scope.unfinished
            if instance.name in each.resources
        ],
        polling=_polling(views.member(scope.id, instance.name)),
    )


def _polling(member: Member | None) -> schemas.Polling | None:
    if member is None or not member.last_s:
        return None
    return schemas.Polling(
        count=member.polls,
        per_minute=round(member.per_minute, 1),
        last=format_rfc3339(Instant(int(member.last_s * 1000))),
        agent=member.agent,
    )


def detail_of(scope: Scope, instance: Instance, views: Views) -> schemas.InstanceDetail:
    events = [each for each in scope.unfinished if instance.name in each.resources]
    return schemas.InstanceDetail(
        **msgspec.structs.asdict(instance_of(scope, instance, views)),
        scope=scope.id,
        events=[event_of(scope.id, each) for each in events],
    )


def _duration(duration_ms: int | None) -> str | None:
    return None if duration_ms is None else format_iso_duration(duration_ms)
