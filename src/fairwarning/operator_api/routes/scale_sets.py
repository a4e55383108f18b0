"""The routes of scale sets: resize, replace an instance, change model and policy, upgrade."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from fairwarning.common.durations import DURATION_PATTERN, format_iso_duration
from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.model import EventId, Instance, InstanceName, Policy, Scope, ScopeKind
from fairwarning.core.notice import parse_reimage_notice_ms, parse_terminate_notice_ms
from fairwarning.core.pending_deletions import is_due_terminate
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import CAPACITY_MAX
from fairwarning.operator_api import scale_sets, schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.resolve_names import find_instance, find_resource
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import Event, In, Name, NoQuery, Out
from fairwarning.operator_api.to_schema import event_of, scope_of

Address = Annotated[str, Meta(max_length=64)]


class ScaleBody(In):
    capacity: Annotated[int, Meta(ge=0, le=CAPACITY_MAX)]
    addresses: Annotated[list[Address], Meta(max_length=CAPACITY_MAX)] = []
    """The addresses for new instances, in order. If there are too few, the rest have none."""


class Leaving(Out):
    """An instance that would be deleted."""

    name: str
    terminate_notice: str | None
    """How long before the deletion the instance is warned; null if it is not warned."""
    not_before: str
    """When it is deleted at the earliest, unless it approves."""


class ScalePlan(Out):
    name: str
    members: int
    capacity: int
    adds: int
    removes: list[str]
    leaving: list[Leaving]


async def plan_scale(control: Control, call: Call[NoQuery, ScaleBody]) -> ScalePlan:
    groups = await _groups(control, call.path["scope"])
    members, capacity = scale_sets.members(groups), call.body.capacity
    leavers = scale_sets.leavers_to(groups, capacity)
    return ScalePlan(
        name=groups[0].roster.resource,
        members=len(members),
        capacity=capacity,
        adds=max(0, capacity - len(members)),
        removes=[each.name for _, each in leavers],
        leaving=[_leaving(scope, each, control.clock.now()) for scope, each in leavers],
    )


def _leaving(scope: Scope, instance: Instance, now: Instant) -> Leaving:
    notice_ms = instance.model.terminate_notice_ms if is_due_terminate(scope, instance) else None
    return Leaving(
        name=instance.name,
        terminate_notice=None if notice_ms is None else format_iso_duration(notice_ms),
        not_before=format_rfc3339(Instant(now + (notice_ms or 0))),
    )


class Resized(Out):
    name: str
    capacity: int
    added: list[str]
    events: list[Event]


async def scale(control: Control, call: Call[NoQuery, ScaleBody]) -> Resized:
    groups = await _groups(control, call.path["scope"])
    resized = await scale_sets.resize(
        control,
        groups,
        call.body.capacity,
        addresses=call.body.addresses,
        by=call.by,
        why=call.why,
    )
    return await _resized(control, groups, resized)


class ReplaceBody(In):
    addresses: Annotated[list[Address], Meta(max_length=1)] = []


async def replace_instance(control: Control, call: Call[NoQuery, ReplaceBody]) -> Resized:
    scope_id, name = find_instance(control.views, call.path["instance"])
    groups = await scale_sets.groups_of(control, await control.store.read(scope_id))
    resized = await scale_sets.replace_instance(
        control, groups, name, addresses=call.body.addresses, by=call.by, why=call.why
    )
    return await _resized(control, groups, resized)


NoticeText = Annotated[
    Any,
    Meta(
        description="`15m` or ISO 8601",
        extra_json_schema={"type": ["string", "null"], "pattern": DURATION_PATTERN},
    ),
]
"""Any JSON is accepted here, because a wrong notice has an error code of its own."""


class ModelBody(In):
    """A change of the model. A notice that is left out does not change; null switches it off."""

    terminate_notice: NoticeText = UNSET
    reimage_notice: NoticeText = UNSET


class Scopes(Out):
    scopes: list[schemas.Scope]


async def update_model(control: Control, call: Call[NoQuery, ModelBody]) -> Scopes:
    groups = await _groups(control, call.path["scope"])
    model, body = groups[0].roster.model, call.body
    await scale_sets.change_model(
        control,
        groups,
        terminate_notice_ms=_notice_ms(
            body.terminate_notice, model.terminate_notice_ms, parse_terminate_notice_ms
        ),
        reimage_notice_ms=_notice_ms(
            body.reimage_notice, model.reimage_notice_ms, parse_reimage_notice_ms
        ),
        profile=model.profile,
        by=call.by,
        why=call.why,
    )
    return await _scopes(control, groups)


class UpgradeBody(In):
    instances: Annotated[list[Name], Meta(min_length=1, max_length=CAPACITY_MAX)] | None = None


class Upgraded(Out):
    upgraded: list[str]


async def upgrade_instances(control: Control, call: Call[NoQuery, UpgradeBody]) -> Upgraded:
    groups = await _groups(control, call.path["scope"])
    asked = call.body.instances
    names = None if asked is None else [InstanceName(name) for name in asked]
    done = await scale_sets.upgrade(control, groups, names, by=call.by, why=call.why)
    return Upgraded(upgraded=list(done))


class PolicyBody(In):
    """A change of the policy. Members that are left out do not change."""

    approve_user_reboot: bool | UnsetType = UNSET
    approve_user_redeploy: bool | UnsetType = UNSET
    approve_all_instances_down: bool | UnsetType = UNSET


async def update_policy(control: Control, call: Call[NoQuery, PolicyBody]) -> Scopes:
    groups = await find_resource(control, call.path["scope"])
    policy = _policy(groups[0].roster.policy, call.body)
    await scale_sets.change_policy(control, groups, policy, by=call.by, why=call.why)
    return await _scopes(control, groups)


async def _groups(control: Control, name: str) -> list[Scope]:
    groups = await find_resource(control, name)
    kind = groups[0].roster.kind
    if kind is not ScopeKind.SCALE_SET:
        raise Refused(
            Code.NOT_A_SCALE_SET,
            f"{name!r} is a {kind} and no scale set; `fairwarning fleet show` lists them",
        )
    return groups


def _notice_ms(said: object, before_ms: int | None, parse: Callable[[object], int]) -> int | None:
    if said is UNSET:
        return before_ms
    return None if said is None else parse(said)


def _policy(before: Policy, body: PolicyBody) -> Policy:
    said = {name: getattr(body, name) for name in body.__struct_fields__}
    return replace(before, **{name: value for name, value in said.items() if value is not UNSET})


async def _scopes(control: Control, groups: Sequence[Scope]) -> Scopes:
    there = await scale_sets.groups_of(control, groups[0])
    return Scopes(scopes=[scope_of(each, control.views) for each in there])


async def _resized(
    control: Control, groups: Sequence[Scope], resized: scale_sets.Resized
) -> Resized:
    there = await scale_sets.groups_of(control, groups[0])
    return Resized(
        name=there[0].roster.resource,
        capacity=len(scale_sets.members(there)),
        added=list(resized.added),
        events=[await _event(control, there, id) for id in resized.events],
    )


async def _event(control: Control, groups: Sequence[Scope], id: EventId) -> Event:
    """Return the event from its scope, or from the store if the scope no longer holds it."""
    for scope in groups:
        if id in scope.events:
            return event_of(scope.id, scope.events[id])
    return event_of(*await control.store.find_event(id))


ROUTES = (
    Route(method="POST", path="/instances/{instance:path}/replace",
          summary="Replace an instance of a scale set", role=Role.OPERATOR, handle=replace_instance,
          body=ReplaceBody, is_body_optional=True, answer=Resized, status=202, is_in_steps=True),
    Route(method="POST", path="/scopes/{scope:path}/scale/plan",
          summary="Who would go or come; nothing is changed", role=Role.VIEWER, handle=plan_scale,
          body=ScaleBody, answer=ScalePlan, is_preview=True),
    Route(method="POST", path="/scopes/{scope:path}/scale", summary="Resize a scale set",
          role=Role.OPERATOR, handle=scale, body=ScaleBody, answer=Resized, status=202,
          is_in_steps=True),
    Route(method="POST", path="/scopes/{scope:path}/model",
          summary="Change the model of a scale set", role=Role.OPERATOR, handle=update_model,
          body=ModelBody, answer=Scopes, is_in_steps=True),
    Route(method="POST", path="/scopes/{scope:path}/upgrade",
          summary="Bring instances to the latest model", role=Role.OPERATOR,
          handle=upgrade_instances, body=UpgradeBody, is_body_optional=True, answer=Upgraded,
          is_in_steps=True),
    Route(method="POST", path="/scopes/{scope:path}/policy",
          summary="Change what is approved in advance", role=Role.OPERATOR, handle=update_policy,
          body=PolicyBody, answer=Scopes, is_in_steps=True),
)  # fmt: skip
