"""Scale sets: made, shown, changed and deleted."""

from msgspec.structs import replace

from fairwarning.azure_api import lists
from fairwarning.azure_api.body_values import object_at, said
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.instance_changes import locked, mark_removed
from fairwarning.azure_api.instance_views import set_view_json
from fairwarning.azure_api.notice_profiles import refuse_too_new
from fairwarning.azure_api.operations import Operation, accepted, lro_headers
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
    async with locked(arm, call, _lock(call)) as own:
        found = await standing(own, call.path)
        if found is None:
            return _changed(call, await create(own, call, body), 201)
        return _changed(call, await change(own, call, found, body), 200)


async def patched(arm: Arm, call: ArmCall) -> Reply:
    body = _body(call)
    async with locked(arm, call, _lock(call)) as own:
        found = await needed(own, call.path)
        return _changed(call, await change(own, call, found, body), 200)


async def deleted(arm: Arm, call: ArmCall) -> Reply:
    async with locked(arm, call, _lock(call)) as own:
        found = await standing(own, call.path)
        if found is None:
            return Reply(204)
        operation = await delete(own, call, found)
        return accepted(call, operation, found.roster.location)


def _body(call: ArmCall) -> Json:
    if call.body is None:
        raise ArmError(
            400, "InvalidRequestContent", "The request content was empty; send a JSON object."
        )
    body = said(call.body)
    refuse_too_new(call, object_at(body, "properties"))
    return body


def _lock(call: ArmCall) -> str:
    """Not the one of resizing, which is taken inside of this."""
    return f"arm{call.path.id.lower()}"


def _changed(call: ArmCall, found: Standing, status: int) -> Reply:
    assert found.operation is not None, "a change has just begun one"
    headers = lro_headers(call, found.operation, found.roster.location)
    return Reply(status, set_json(found, call), headers)


# The end of a whole scale set. It lasts until the last instance is gone, and so does the set.
async def delete(arm: Arm, call: ArmCall, found: Standing) -> Operation:
    """Every instance is told as its own model says. Asking again joins what is under way."""
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
