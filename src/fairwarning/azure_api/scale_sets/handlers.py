"""Scale sets: made, shown, changed and deleted."""

from msgspec.structs import replace

from fairwarning.azure_api import lists
from fairwarning.azure_api.body_values import object_at, said
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.instance_changes import locked, mark_removed
from fairwarning.azure_api.instance_views import set_view_json
from fairwarning.azure_api.notice_profiles import refuse_too_new
from fairwarning.azure_api.operations import Deletion, Operation, accepted, began
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.scale_sets import actions
from fairwarning.azure_api.scale_sets.actions import operate
from fairwarning.azure_api.scale_sets.render import set_json, true_body
from fairwarning.azure_api.scale_sets.state import (
    TYPE,
    Standing,
    all_of,
    needed,
    new_kept,
    standing,
)
from fairwarning.azure_api.scale_sets.update import change, create
from fairwarning.core.model import OperationKind

_KEY = TYPE.lower()


async def shown(arm: Arm, call: ArmCall) -> Reply:
    return Reply(200, set_json(await needed(arm, call.path), call))


async def all_shown(arm: Arm, call: ArmCall) -> Reply:
    sets = all_of(arm, call.path.subscription, call.path.group)
    return await lists.listed(call, [set_json(each, call) async for each in sets])


async def view_shown(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    return Reply(200, set_view_json(found.groups))


async def put(arm: Arm, call: ArmCall) -> Reply:
    """Makes it, or merges what is said into what is there."""
    body = _body(call)
    async with locked(arm, call, _lock(call.path)) as own:
        found = await standing(own, call.path)
        if found is None:
            return _changed(call, await create(own, call, body), 201)
        return _changed(call, await change(own, call, found, body), 200)


async def patched(arm: Arm, call: ArmCall) -> Reply:
    body = _body(call)
    async with locked(arm, call, _lock(call.path)) as own:
        found = await needed(own, call.path)
        return _changed(call, await change(own, call, found, body), 200)


async def deleted(arm: Arm, call: ArmCall) -> Reply:
    deletion = await begin_delete(arm, call, call.path)
    return Reply(204) if deletion is None else accepted(call, *deletion)


async def begin_delete(arm: Arm, call: ArmCall, path: ResourcePath) -> Deletion | None:
    """None if there is no such scale set. Asking again joins the deletion that is under way."""
    async with locked(arm, call, _lock(path)) as own:
        found = await standing(own, path)
        if found is None:
            return None
        return Deletion(await _delete(own, call, found), found.roster.location)


def _body(call: ArmCall) -> Json:
    if call.body is None:
        raise ArmError(
            400, "InvalidRequestContent", "The request content was empty; send a JSON object."
        )
    body = said(call.body)
    refuse_too_new(call, object_at(body, "properties"))
    return body


def _lock(path: ResourcePath) -> str:
    """Not the one of resizing, which is taken inside of this."""
    return f"arm{path.id.lower()}"


def _changed(call: ArmCall, found: Standing, status: int) -> Reply:
    assert found.operation is not None, "a change has just begun one"
    return began(call, found.operation, found.roster.location, status, set_json(found, call))


async def _delete(arm: Arm, call: ArmCall, found: Standing) -> Operation:
    """Every instance gets the notice that its own model says; the set goes with the last one."""
    if found.is_going and found.operation is not None and not found.members:
        return found.operation
    events = await operate(arm, call, found.machines, OperationKind.DELETE)
    # Only now: if the deletes are refused, or the store is down, the set is not removed.
    for group in found.groups:
        await mark_removed(arm, call, group.id)
    operation = await arm.operations.begin(call, verb="delete", target=found.id, events=events)
    kept = found.kept or new_kept(found, arm.control.clock.now())
    kept = replace(kept, body=true_body(found), is_going=True, operation=operation.id)
    await arm.shelf.put(kept, by=call.by)
    return operation


ROUTES: Routes = {
    **actions.ROUTES,
    ("GET", "microsoft.compute", "virtualmachinescalesets"): all_shown,
    ("GET", _KEY, ""): shown,
    ("GET", _KEY, "instanceview"): view_shown,
    ("PUT", _KEY, ""): put,
    ("PATCH", _KEY, ""): patched,
    ("DELETE", _KEY, ""): deleted,
}
