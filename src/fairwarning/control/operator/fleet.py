"""The fleet: look at it, declare it, change it, remove from it."""

import asyncio
from typing import Any

from fairwarning.control import shapes
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.names import find_instance, find_scope
from fairwarning.control.operation import Call, Document, Operation
from fairwarning.control.problems import Problem
from fairwarning.control.rendering import detail_of, scope_of
from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.fleetfile import Fleet, FleetProblem, Plan, plan, read_json, read_toml, removal
from fairwarning.fleetfile.applying import apply, current_scopes

HARMLESS_DRIVER = "simulated"


async def listed(control: Control, call: Call[shapes.FleetQuery, None]) -> shapes.Fleet:
    query = call.query
    after = ScopeId(query.after or "")
    if query.search:
        found = await _searched(control, query.search, after, query.limit)
    else:
        found = await _page(control, after, query.limit)
    return shapes.Fleet(
        scopes=[scope_of(each, control.views) for each in found],
        next=found[-1].id if len(found) == query.limit else None,
    )


async def scope(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.Scope:
    found = await control.store.read(find_scope(control.views, call.path["scope"]))
    return scope_of(found, control.views)


async def instance(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.InstanceDetail:
    scope_id, name = find_instance(control.views, call.path["instance"])
    found = await control.store.read(scope_id)
    member = found.roster.instances.get(name)
    if member is None:
        raise Problem(404, "unknown-instance", f"instance {name!r} is gone; list the fleet again")
    return detail_of(found, member, control.views)


async def planned(control: Control, call: Call[shapes.NoQuery, Document]) -> shapes.FleetPlan:
    return _shown(await _plan(control, call.body, prune=True))


async def reconcile(control: Control, call: Call[shapes.ForceQuery, Document]) -> shapes.FleetPlan:
    return await _apply(control, call, await _plan(control, call.body, prune=True))


async def declare(control: Control, call: Call[shapes.ForceQuery, Document]) -> shapes.FleetPlan:
    return await _apply(control, call, await _plan(control, call.body, prune=False))


async def remove_scope(control: Control, call: Call[shapes.ForceQuery, None]) -> shapes.FleetPlan:
    found = await control.store.read(find_scope(control.views, call.path["scope"]))
    return await _apply(control, call, removal(found))


async def remove_instance(
    control: Control, call: Call[shapes.ForceQuery, None]
) -> shapes.FleetPlan:
    scope_id, name = find_instance(control.views, call.path["instance"])
    return await _apply(control, call, removal(await control.store.read(scope_id), {name}))


async def _page(control: Control, after: ScopeId, limit: int) -> list[Scope]:
    """Scopes in which nobody is left do not count."""
    found: list[Scope] = []
    while page := await control.store.scopes(after=after, limit=limit):
        found += [each for each in page if each.roster.live]
        after = page[-1].id
        if len(found) >= limit:
            break
    return found[:limit]


async def _searched(control: Control, text: str, after: ScopeId, limit: int) -> list[Scope]:
    """By any part of the scope's id or of an instance's name, from what is in memory."""
    ids = [id for id in control.views.search(text) if id > after][:limit]
    found = []
    for id in ids:
        try:
            found.append(await control.store.read(id))
        except Refused:
            continue
    return found


async def _plan(control: Control, document: Document, *, prune: bool) -> Plan:
    """In a thread: a large file takes seconds, and instances poll meanwhile."""
    current = await current_scopes(control.store)

    def work() -> Plan:
        fleet = _read(document, origin="file" if prune else "api")
        return plan(current, fleet, prune=prune)

    return await asyncio.to_thread(work)


def _read(document: Document, *, origin: str) -> Fleet:
    try:
        if document.toml is not None:
            return read_toml(document.toml, origin=origin)
        return read_json(document.data, origin=origin)
    except FleetProblem as problem:
        raise Problem(
            422, "fleet-invalid", problem.message, line=problem.line, pointer=problem.pointer
        ) from None


async def _apply(
    control: Control, call: Call[shapes.ForceQuery, Any], planned: Plan
) -> shapes.FleetPlan:
    force = call.query.force
    _refuse_drivers(call, planned)
    await apply(control.engine, planned, force=force, by=call.by, why=call.why)
    return _shown(planned)


def _refuse_drivers(call: Call[shapes.ForceQuery, Any], planned: Plan) -> None:
    """Who says what a driver runs can run anything on the server."""
    before = {step.scope_id: step.before.roster for step in planned.declares}
    wanted = [(step.scope_id, step.roster) for step in planned.declares]
    wanted += [(scope.id, scope.roster) for scope in planned.creates]
    for scope_id, roster in wanted:
        old = before.get(scope_id)
        is_new = old is None or (old.driver, old.driver_settings) != (
            roster.driver,
            roster.driver_settings,
        )
        if is_new and roster.driver != HARMLESS_DRIVER and call.caller.role < Role.ADMIN:
            raise Problem(
                403,
                "driver-needs-admin",
                f"{scope_id} would get the driver {roster.driver!r}, which acts on the server's "
                "behalf; only an admin may set or change one",
            )


def _shown(planned: Plan) -> shapes.FleetPlan:
    return shapes.FleetPlan(
        changes=[
            shapes.FleetChange(
                action=each.action,
                what=each.what,
                scope=each.scope,
                detail=each.detail,
                events=list(each.events),
            )
            for each in planned.changes
        ],
        kept=list(planned.kept),
    )


OPERATIONS = (
    Operation(method="GET", path="/fleet", summary="Scopes and their instances", role=Role.VIEWER,
              handle=listed, query=shapes.FleetQuery, answer=shapes.Fleet),
    Operation(method="POST", path="/fleet/plan", summary="What PUT /fleet would do",
              role=Role.VIEWER, handle=planned, takes_toml=True, answer=shapes.FleetPlan,
              is_preview=True),
    Operation(method="PUT", path="/fleet", summary="Make the fleet what a fleet file says",
              role=Role.OPERATOR, handle=reconcile, query=shapes.ForceQuery, takes_toml=True,
              answer=shapes.FleetPlan),
    Operation(method="POST", path="/fleet", summary="Declare or change some resources",
              role=Role.OPERATOR, handle=declare, query=shapes.ForceQuery, takes_toml=True,
              answer=shapes.FleetPlan),
    Operation(method="GET", path="/scopes/{scope:path}", summary="A scope", role=Role.VIEWER,
              handle=scope, answer=shapes.Scope),
    Operation(method="DELETE", path="/scopes/{scope:path}", summary="Remove a scope",
              role=Role.OPERATOR, handle=remove_scope, query=shapes.ForceQuery,
              answer=shapes.FleetPlan),
    Operation(method="GET", path="/instances/{instance:path}",
              summary="An instance and its unfinished events", role=Role.VIEWER, handle=instance,
              answer=shapes.InstanceDetail),
    Operation(method="DELETE", path="/instances/{instance:path}", summary="Remove an instance",
              role=Role.OPERATOR, handle=remove_instance, query=shapes.ForceQuery,
              answer=shapes.FleetPlan),
)  # fmt: skip
