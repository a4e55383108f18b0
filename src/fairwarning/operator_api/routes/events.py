"""The routes of events: schedule, list, get, approve, cancel, postpone; and of operations."""

import uuid
from typing import Any

from msgspec.structs import replace

from fairwarning.core.api_versions import VERSIONS
from fairwarning.core.commands import Approve, Cancel, Command, Operate, Postpone, Schedule
from fairwarning.core.document import render, visible_events
from fairwarning.core.instants import Instant, later
from fairwarning.core.model import EventId, EventType, InstanceName, OperationKind, Phase, ScopeId
from fairwarning.core.start_rules import in_the_way, why_waiting
from fairwarning.engine.protocols import Choice, Mark
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms, read_instant
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import (
    find_instance,
    find_past_instance,
    find_past_scope,
    find_scope,
)
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.to_schema import event_of

TIMELINE_MAX = 500  # Enough for an event of a hundred instances, each with a few entries.
_SEEDED_IDS = uuid.UUID("5d2c0f0e-6c2b-4a53-9a55-0f6a3f1f7f11")


async def schedule_event(
    control: Control, call: Call[schemas.NoQuery, schemas.ScheduleBody]
) -> schemas.Event:
    body = call.body
    id = EventId(body.id.upper()) if body.id else _new_id(control, call)
    if call.was_done:
        return await _get_event(control, id)
    scope_id, targets = await _targets(control, body)
    if body.notice is not None and body.not_before is not None:
        raise Problem(
            422, "body-invalid", "notice and notBefore are both given; give one", pointer="/notice"
        )
    if body.already_happened and (body.notice is not None or body.not_before is not None):
        raise Problem(
            422,
            "body-invalid",
            "what already happened cannot be announced for later; leave notice and notBefore out",
            pointer="/alreadyHappened",
        )
    duration_ms = None if body.duration is None else read_duration_ms("duration", body.duration)
    lasts_ms = None if body.lasts is None else read_duration_ms("lasts", body.lasts)
    command = Schedule(
        event_id=id,
        type=EventType(body.type),
        targets=targets,
        notice_ms=None if body.notice is None else read_duration_ms("notice", body.notice),
        not_before_ms=None
        if body.not_before is None
        else read_instant("notBefore", body.not_before),
        duration_s=None if duration_ms is None else duration_ms // 1000,
        lasts_s=None if lasts_ms is None else lasts_ms // 1000,
        description=body.description,
        already_happened=body.already_happened,
    )
    return await _create_event(control, call, scope_id, command, id)


async def list_events(control: Control, call: Call[schemas.EventsQuery, None]) -> schemas.Events:
    query = call.query
    choice = Choice(
        phases=tuple(query.phase),
        types=tuple(query.type),
        sources=tuple(query.source),
        scope_id=None if query.scope is None else await find_past_scope(control, query.scope),
        instance=None,
    )
    if query.instance is not None:
        scope_id, name = await find_past_instance(control, query.instance)
        if choice.scope_id not in (None, scope_id):
            return schemas.Events(events=[], next=None)
        choice = Choice(
            phases=choice.phases,
            types=choice.types,
            sources=choice.sources,
            scope_id=scope_id,
            instance=name,
        )
    before = None if query.after is None else _mark(query.after)
    found = await control.store.events(choice, before=before, limit=query.limit)
    last = found[-1][1] if len(found) == query.limit else None
    return schemas.Events(
        events=[event_of(scope_id, event) for scope_id, event in found],
        next=None if last is None else f"{last.created_ms}_{last.id}",
    )


async def get_event(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Event:
    return await _with_waits(control, await _get_event(control, _id(call)))


async def _with_waits(control: Control, found: schemas.Event) -> schemas.Event:
    if found.phase is not Phase.SCHEDULED:
        return found
    scope = await control.store.read(ScopeId(found.scope))
    event = scope.events.get(EventId(found.id))
    if event is not None:
        found.waits_for = [each.id for each in in_the_way(scope, event)]
        found.waits = why_waiting(scope, event, control.clock.now())
    return found


async def approve_event(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Event:
    id = _id(call)
    if not call.was_done:
        scope_id, _ = await control.store.find_event(id)
        command = Approve(event_id=id, by=call.by)
        await control.engine.submit(scope_id, command, by=call.by, why=call.why)
    return await _with_waits(control, await _get_event(control, id))


async def cancel_event(
    control: Control, call: Call[schemas.NoQuery, schemas.CancelBody]
) -> schemas.Event:
    id = _id(call)
    if not call.was_done:
        scope_id, _ = await control.store.find_event(id)
        command = Cancel(event_id=id, reason=call.body.reason or call.why)
        await control.engine.submit(scope_id, command, by=call.by, why=call.why)
    return await _get_event(control, id)


async def postpone_event(
    control: Control, call: Call[schemas.NoQuery, schemas.PostponeBody]
) -> schemas.Event:
    id, body = _id(call), call.body
    new_id = _new_id(control, call)
    if call.was_done:
        return await _get_event(control, new_id)
    if (body.notice is None) == (body.not_before is None):
        raise Problem(422, "body-invalid", "give either notBefore or notice")
    until = (
        read_instant("notBefore", body.not_before)
        if body.not_before is not None
        else later(control.clock.now(), read_duration_ms("notice", body.notice or ""))
    )
    scope_id, _ = await control.store.find_event(id)
    command = Postpone(event_id=id, new_event_id=new_id, not_before_ms=until)
    return await _create_event(control, call, scope_id, command, new_id)


def _operation_route(kind: OperationKind) -> Route:
    async def operate(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Event:
        id = _new_id(control, call)
        # Check this first, because the instance may be gone by now, and its name unknown.
        if call.was_done:
            return await _get_event(control, id)
        scope_id, name = find_instance(control.views, call.path["instance"])
        command = Operate(event_id=id, kind=kind, instance=name)
        return await _create_event(control, call, scope_id, command, id)

    return Route(
        method="POST",
        path=f"/instances/{{instance:path}}/{kind.value}",
        summary=f"{kind.value.capitalize()} an instance, as its owner",
        role=Role.OPERATOR,
        handle=operate,
        answer=schemas.Event,
        status=202,
    )


async def _create_event(
    control: Control,
    call: Call[Any, Any],
    scope_id: ScopeId,
    command: Command,
    id: EventId,
) -> schemas.Event:
    await control.engine.submit(scope_id, command, by=call.by, why=call.why)
    return await _get_event(control, id)


async def _get_event(control: Control, id: EventId) -> schemas.Event:
    scope_id, event = await control.store.find_event(id)
    entries = await control.store.history(event_id=id, limit=TIMELINE_MAX)
    return event_of(scope_id, event, reversed(entries))


async def _targets(
    control: Control, body: schemas.ScheduleBody
) -> tuple[ScopeId, tuple[InstanceName, ...]]:
    if body.targets and body.scope is None:
        found = [find_instance(control.views, name) for name in body.targets]
        scopes = {scope_id for scope_id, _ in found}
        if len(scopes) > 1:
            raise Problem(
                422,
                "spans-scopes",
                "the instances belong to several scopes and an event to one; schedule one for each",
                pointer="/targets",
            )
        return found[0][0], tuple(name for _, name in found)
    if body.scope is None or body.targets or body.update_domain is None:
        raise Problem(
            422,
            "no-target",
            "name the targets, or a scope and its updateDomain",
            pointer="/targets",
        )
    scope = await control.store.read(find_scope(control.views, body.scope))
    names = tuple(
        each.name for each in scope.roster.live if each.update_domain == body.update_domain
    )
    if not scope.roster.live:
        raise Problem(
            422,
            "no-target",
            f"{body.scope!r} has no instances; scale it up first",
            pointer="/scope",
        )
    if not names:
        domains = sorted({each.update_domain for each in scope.roster.live})
        raise Problem(
            422,
            "no-target",
            f"{body.scope!r} has nobody in update domain {body.update_domain}; it has "
            f"{', '.join(map(str, domains))}",
            pointer="/updateDomain",
        )
    return scope.id, names


def _id(call: Call[Any, Any]) -> EventId:
    return EventId(call.path["id"].upper())


def _new_id(control: Control, call: Call[Any, Any]) -> EventId:
    if call.seed is None:
        return control.engine.new_id()
    return EventId(str(uuid.uuid5(_SEEDED_IDS, call.seed)).upper())


def _mark(text: str) -> Mark:
    created, _, id = text.partition("_")
    if not (created.isascii() and created.isdigit() and len(created) <= 15 and id):
        raise Problem(422, "cursor-invalid", "`after` is no cursor; take `next` of a page")
    return Mark(created_ms=Instant(int(created)), event_id=EventId(id))


async def list_event_documents(
    control: Control, call: Call[schemas.NoQuery, None]
) -> schemas.EventDocuments:
    scope_id, event = await control.store.find_event(EventId(call.path["id"].upper()))
    scope = await control.store.read(scope_id)
    # The first poll activates a scope and sees incarnation 1.
    alone = replace(scope, events={event.id: event}, incarnation=max(scope.incarnation, 1))
    is_visible = bool(visible_events(alone))
    return schemas.EventDocuments(
        documents=[
            schemas.EventDocument(
                api_version=version.name,
                shown=is_visible and event.type in version.types,
                body=render(alone, version).decode(),
            )
            for version in VERSIONS
        ]
    )


async def count_events(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.EventCounts:
    found = await control.store.count_events()
    return schemas.EventCounts(
        counts=[
            schemas.EventCount(type=type, phase=phase, count=count)
            for (type, phase), count in sorted(found.items())
            if count
        ]
    )


ROUTES = (
    Route(method="POST", path="/events", summary="Announce an event", role=Role.OPERATOR,
          handle=schedule_event, body=schemas.ScheduleBody, answer=schemas.Event, status=201),
    Route(method="GET", path="/events", summary="Events, newest first", role=Role.VIEWER,
          handle=list_events, query=schemas.EventsQuery, answer=schemas.Events),
    Route(method="GET", path="/events/{id}", summary="An event and its timeline",
          role=Role.VIEWER, handle=get_event, answer=schemas.Event),
    Route(method="POST", path="/events/{id}/approve", summary="Agree to an early start",
          role=Role.APPROVER, handle=approve_event, answer=schemas.Event),
    Route(method="POST", path="/events/{id}/cancel", summary="Take an event back",
          role=Role.OPERATOR, handle=cancel_event, body=schemas.CancelBody, is_body_optional=True,
          answer=schemas.Event),
    Route(method="POST", path="/events/{id}/postpone",
          summary="Cancel an event and announce another in its place", role=Role.OPERATOR,
          handle=postpone_event, body=schemas.PostponeBody, answer=schemas.Event, status=201),
    *(_operation_route(kind) for kind in OperationKind),
    Route(method="GET", path="/events/{id}/documents",
          summary="What instances see of an event, for each api-version", role=Role.VIEWER,
          handle=list_event_documents, answer=schemas.EventDocuments),
    Route(method="GET", path="/event-counts", summary="How many events of each type and phase",
          role=Role.VIEWER, handle=count_events, answer=schemas.EventCounts),
)  # fmt: skip
