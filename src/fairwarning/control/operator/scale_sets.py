"""Scale sets as a whole: how many, of which model, under which policy."""

from collections.abc import Callable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from fairwarning.control import scale_set_shapes as shapes
from fairwarning.control import scale_sets
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.names import find_instance, find_resource
from fairwarning.control.operation import Call, Operation
from fairwarning.control.rendering import event_of, scope_of
from fairwarning.control.shapes import Event, NoQuery
from fairwarning.core.model import EventId, InstanceName, Policy, Scope, ScopeKind
from fairwarning.core.notice import parse_reimage_notice_ms, parse_terminate_notice_ms
from fairwarning.core.refusals import Code, Refused


async def plan_scale(control: Control, call: Call[NoQuery, shapes.ScaleBody]) -> shapes.ScalePlan:
    groups = await _groups(control, call.path["scope"])
    members, capacity = scale_sets.members(groups), call.body.capacity
    return shapes.ScalePlan(
        name=groups[0].roster.resource,
        members=len(members),
        capacity=capacity,
        adds=max(0, capacity - len(members)),
        removes=[instance.name for _, instance in members[capacity:]],
    )


async def scale(control: Control, call: Call[NoQuery, shapes.ScaleBody]) -> shapes.Resized:
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


async def replace_one(control: Control, call: Call[NoQuery, shapes.ReplaceBody]) -> shapes.Resized:
    scope_id, name = find_instance(control.views, call.path["instance"])
    groups = await scale_sets.groups_of(control, await control.store.read(scope_id))
    resized = await scale_sets.replace_instance(
        control, groups, name, addresses=call.body.addresses, by=call.by, why=call.why
    )
    return await _resized(control, groups, resized)


async def change_model(control: Control, call: Call[NoQuery, shapes.ModelBody]) -> shapes.Scopes:
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


async def upgrade(control: Control, call: Call[NoQuery, shapes.UpgradeBody]) -> shapes.Upgraded:
    groups = await _groups(control, call.path["scope"])
    asked = call.body.instances
    names = None if asked is None else [InstanceName(name) for name in asked]
    done = await scale_sets.upgrade(control, groups, names, by=call.by, why=call.why)
    return shapes.Upgraded(upgraded=list(done))


async def change_policy(control: Control, call: Call[NoQuery, shapes.PolicyBody]) -> shapes.Scopes:
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


def _policy(before: Policy, body: shapes.PolicyBody) -> Policy:
    said = {name: getattr(body, name) for name in body.__struct_fields__}
    return replace(before, **{name: value for name, value in said.items() if value is not UNSET})


async def _scopes(control: Control, groups: Sequence[Scope]) -> shapes.Scopes:
    there = await scale_sets.groups_of(control, groups[0])
    return shapes.Scopes(scopes=[scope_of(each, control.views) for each in there])


async def _resized(
    control: Control, groups: Sequence[Scope], resized: scale_sets.Resized
) -> shapes.Resized:
    there = await scale_sets.groups_of(control, groups[0])
    return shapes.Resized(
        name=there[0].roster.resource,
        capacity=len(scale_sets.members(there)),
        added=list(resized.added),
        events=[await _event(control, there, id) for id in resized.events],
    )


async def _event(control: Control, groups: Sequence[Scope], id: EventId) -> Event:
    """From its scope, unless it is over and forgotten there already."""
    for scope in groups:
        if id in scope.events:
            return event_of(scope.id, scope.events[id])
    return event_of(*await control.store.find_event(id))


OPERATIONS = (
    Operation(method="POST", path="/instances/{instance:path}/replace",
              summary="Replace an instance of a scale set", role=Role.OPERATOR, handle=replace_one,
              body=shapes.ReplaceBody, is_body_optional=True, answer=shapes.Resized, status=202,
              is_in_steps=True),
    Operation(method="POST", path="/scopes/{scope:path}/scale/plan",
              summary="Who would go or come; nothing is changed", role=Role.VIEWER,
              handle=plan_scale, body=shapes.ScaleBody, answer=shapes.ScalePlan, is_preview=True),
    Operation(method="POST", path="/scopes/{scope:path}/scale", summary="Resize a scale set",
              role=Role.OPERATOR, handle=scale, body=shapes.ScaleBody, answer=shapes.Resized,
              status=202, is_in_steps=True),
    Operation(method="POST", path="/scopes/{scope:path}/model",
              summary="Change the model of a scale set", role=Role.OPERATOR, handle=change_model,
              body=shapes.ModelBody, answer=shapes.Scopes, is_in_steps=True),
    Operation(method="POST", path="/scopes/{scope:path}/upgrade",
              summary="Bring instances to the latest model", role=Role.OPERATOR, handle=upgrade,
              body=shapes.UpgradeBody, is_body_optional=True, answer=shapes.Upgraded,
              is_in_steps=True),
    Operation(method="POST", path="/scopes/{scope:path}/policy",
              summary="Change what is approved in advance", role=Role.OPERATOR,
              handle=change_policy, body=shapes.PolicyBody, answer=shapes.Scopes,
              is_in_steps=True),
)  # fmt: skip
