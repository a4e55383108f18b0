"""The routes of the fleet: read, plan, declare and delete scopes and instances."""

from collections.abc import Sequence
from typing import TypeVar

from fairwarning.common.loop_slices import map_in_slices
from fairwarning.core.model import EventId, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.fleet_file.apply import apply, carry_out
from fairwarning.fleet_file.model import Plan
from fairwarning.fleet_file.plan import confirmation, removal, removal_of_all
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.fleet_plans import (
    Prepared,
    Wish,
    change_of,
    prepare,
    refuse_wish,
    scopes_in,
    steps_in,
    wish_of,
)
from fairwarning.operator_api.fleet_stream import stream_plan, stream_replacement
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_instance, find_resource, find_scope
from fairwarning.operator_api.route import Call, Document, Route
from fairwarning.operator_api.scale_sets import groups_of
from fairwarning.operator_api.to_schema import detail_of, scope_of

Q = TypeVar("Q", bound=schemas.RemoveQuery)


async def get_fleet(control: Control, call: Call[schemas.FleetQuery, None]) -> schemas.Fleet:
    query = call.query
    after = ScopeId(query.after or "")
    if query.search:
        found = await _search(control, query.search, after, query.limit)
    else:
        found = await _page(control, after, query.limit)
    return schemas.Fleet(
        scopes=await map_in_slices(lambda each: scope_of(each, control.views), found),
        next=found[-1].id if len(found) == query.limit else None,
    )


async def get_scope(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.Scope:
    found = await control.store.read(find_scope(control.views, call.path["scope"]))
    return scope_of(found, control.views)


async def get_instance(
    control: Control, call: Call[schemas.NoQuery, None]
) -> schemas.InstanceDetail:
    scope_id, name = find_instance(control.views, call.path["instance"])
    found = await control.store.read(scope_id)
    member = found.roster.instances.get(name)
    if member is None:
        raise Problem(404, "unknown-instance", f"instance {name!r} is gone; list the fleet again")
    return detail_of(found, member, control.views)


async def plan_fleet(
    control: Control, call: Call[schemas.PlanQuery, Document]
) -> schemas.FleetPlan:
    wish = Wish(
        document=call.body,
        prune=True,
        caller=call.caller,
        drivers=control.drivers,
        is_preview=True,
        without_notice=call.query.without_notice,
    )
    return _to_schema(await prepare(control, wish))


async def replace_fleet(
    control: Control, call: Call[schemas.RemoveQuery, Document]
) -> schemas.FleetPlan:
    return await _carry_out(control, call, wish_of(control, call, call.body, prune=True))


async def update_fleet(
    control: Control, call: Call[schemas.DeclareQuery, Document]
) -> schemas.FleetPlan:
    wish = wish_of(control, call, call.body, prune=False)._replace(creates_only=call.query.create)
    return await _carry_out(control, call, wish)


async def delete_scope(
    control: Control, call: Call[schemas.RemoveQuery, None]
) -> schemas.FleetPlan:
    scope_id = find_scope(control.views, call.path["scope"])
    groups = await groups_of(control, await control.store.read(scope_id))
    found = next(each for each in groups if each.id == scope_id)
    planned = removal(found, groups=groups, without_notice=call.query.without_notice)
    return await _delete(control, call, groups, planned)


async def delete_resource(
    control: Control, call: Call[schemas.RemoveResourceQuery, None]
) -> schemas.FleetPlan:
    groups = await find_resource(control, call.path["resource"])
    planned = removal_of_all(groups, without_notice=call.query.without_notice)
    if call.query.preview:
        return _to_schema(_prepared(planned))
    return await _delete(control, call, groups, planned)


async def delete_instance(
    control: Control, call: Call[schemas.RemoveQuery, None]
) -> schemas.FleetPlan:
    scope_id, name = find_instance(control.views, call.path["instance"])
    found = await control.store.read(scope_id)
    unwarned = call.query.without_notice
    return await _delete(control, call, [found], removal(found, {name}, without_notice=unwarned))


async def _page(control: Control, after: ScopeId, limit: int) -> list[Scope]:
    """Return a page of the scopes that have instances, and of the scale sets that have none."""
    found: list[Scope] = []
    while page := await control.store.scopes(after=after, limit=limit):
        found += [each for each in page if each.roster.live or control.views.has_scope(each.id)]
        after = page[-1].id
        if len(found) >= limit:
            break
    return found[:limit]


async def _search(control: Control, text: str, after: ScopeId, limit: int) -> list[Scope]:
    """Return scopes whose id, or an instance's name, contains the text."""
    ids = [id for id in await control.views.search(text) if id > after][:limit]
    found = []
    for id in ids:
        try:
            found.append(await control.store.read(id))
        except Refused:
            continue
    return found


async def _carry_out(control: Control, call: Call[Q, Document], wish: Wish) -> schemas.FleetPlan:
    prepared = await prepare(control, wish)
    terminates = await carry_out(
        control.engine,
        map(steps_in, prepared.declares),
        map(scopes_in, prepared.creates),
        force=wish.force,
        by=call.by,
        why=call.why,
    )
    return _to_schema(prepared, terminates)


async def _delete(
    control: Control, call: Call[Q, None], scopes: Sequence[Scope], found: Plan
) -> schemas.FleetPlan:
    wish = wish_of(control, call, Document(b"", is_toml=False), prune=False)
    refuse_wish(wish, found, scopes)
    terminates = await apply(control.engine, found, force=wish.force, by=call.by, why=call.why)
    return _to_schema(_prepared(found), terminates)


def _prepared(found: Plan) -> Prepared:
    changes = [change_of(each) for each in found.changes]
    return Prepared(confirm=confirmation(found) or None, changes=changes)


def _to_schema(prepared: Prepared, terminates: Sequence[EventId] = ()) -> schemas.FleetPlan:
    return schemas.FleetPlan(
        changes=prepared.changes,
        kept=prepared.kept,
        confirm=prepared.confirm,
        warnings=prepared.warnings,
        terminates=list(terminates),
    )


ROUTES = (
    Route(method="GET", path="/fleet", summary="Scopes and their instances", role=Role.VIEWER,
          handle=get_fleet, query=schemas.FleetQuery, answer=schemas.Fleet),
    Route(method="POST", path="/fleet/plan", summary="What PUT /fleet would do", role=Role.VIEWER,
          handle=plan_fleet, query=schemas.PlanQuery, takes_toml=True, answer=schemas.FleetPlan,
          is_preview=True, stream=stream_plan),
    Route(method="PUT", path="/fleet", summary="Make the fleet what a fleet file says",
          role=Role.OPERATOR, handle=replace_fleet, query=schemas.RemoveQuery, takes_toml=True,
          answer=schemas.FleetPlan, stream=stream_replacement),
    Route(method="POST", path="/fleet", summary="Declare or change some resources",
          role=Role.OPERATOR, handle=update_fleet, query=schemas.DeclareQuery, takes_toml=True,
          answer=schemas.FleetPlan, is_in_steps=True),
    Route(method="GET", path="/scopes/{scope:path}", summary="A scope", role=Role.VIEWER,
          handle=get_scope, answer=schemas.Scope),
    Route(method="DELETE", path="/scopes/{scope:path}", summary="Remove a scope",
          role=Role.OPERATOR, handle=delete_scope, query=schemas.RemoveQuery,
          answer=schemas.FleetPlan),
    Route(method="DELETE", path="/resources/{resource:path}",
          summary="Remove a VM or a set with all its placement groups", role=Role.OPERATOR,
          handle=delete_resource, query=schemas.RemoveResourceQuery, answer=schemas.FleetPlan),
    Route(method="GET", path="/instances/{instance:path}",
          summary="An instance and its unfinished events", role=Role.VIEWER, handle=get_instance,
          answer=schemas.InstanceDetail),
    Route(method="DELETE", path="/instances/{instance:path}", summary="Remove an instance",
          role=Role.OPERATOR, handle=delete_instance, query=schemas.RemoveQuery,
          answer=schemas.FleetPlan),
)  # fmt: skip
