"""These handlers create, get, list, update and delete scale sets."""

from msgspec.structs import replace

from fairwarning.azure_api import lists
from fairwarning.azure_api.body_values import object_at, resource_members
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.etags import Watch, checked_change, refuse_unmatched
from fairwarning.azure_api.instance_changes import locked, mark_removed
from fairwarning.azure_api.notice_profiles import refuse_newer_members
from fairwarning.azure_api.operations import Deletion, Operation, accepted, operation_reply
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.scale_sets import actions, rolling_upgrades
from fairwarning.azure_api.scale_sets.actions import start_operations
from fairwarning.azure_api.scale_sets.render import current_body, scale_set_json, scale_set_tag
from fairwarning.azure_api.scale_sets.state import (
    TYPE,
    ScaleSetState,
    find_scale_set,
    first_record,
    get_scale_set,
    iterate_scale_sets,
)
from fairwarning.azure_api.scale_sets.update import create, update
from fairwarning.core.model import OperationKind

_KEY = TYPE.lower()


async def get(arm: Arm, call: ArmCall) -> Reply:
    lists.read_expand(call, "userData")
    return Reply(200, scale_set_json(await get_scale_set(arm, call.path), call))


async def list_scale_sets(arm: Arm, call: ArmCall) -> Reply:
    sets = iterate_scale_sets(arm, call.path.subscription, call.path.group)
    return await lists.list_reply(call, [scale_set_json(each, call) async for each in sets])


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    """Creates or updates a scale set. A PATCH only updates, and raises ArmError without a set."""
    body = _body(call)

    async def write(own: Arm, watch: Watch) -> Reply:
        found = await _find_matching(own, call, call.path, watch)
        if found is not None:
            return _written_reply(call, await update(own, call, found, body), 200)
        if call.method == "PATCH":
            raise not_found(TYPE, call.path.name, call.path.group)
        return _written_reply(call, await create(own, call, body), 201)

    async with locked(arm, call, _lock(call.path)) as own:
        return await checked_change(own, call, write)


async def delete(arm: Arm, call: ArmCall) -> Reply:
    deletion = await begin_delete(arm, call, call.path)
    return Reply(204) if deletion is None else accepted(call, *deletion)


async def begin_delete(arm: Arm, call: ArmCall, path: ResourcePath) -> Deletion | None:
    """Starts to delete a scale set. Returns None if there is no such scale set.

    If the scale set is already being deleted, this returns the deletion that is under way.
    """

    async def end(own: Arm, watch: Watch) -> Deletion | None:
        found = await _find_matching(own, call, path, watch)
        if found is None:
            return None
        return Deletion(await _delete(own, call, found), found.roster.location)

    async with locked(arm, call, _lock(path)) as own:
        return await checked_change(own, call, end)


async def _find_matching(
    arm: Arm, call: ArmCall, path: ResourcePath, watch: Watch
) -> ScaleSetState | None:
    """Returns the scale set, or None. Raises ArmError if a condition of the call does not hold."""
    found = await find_scale_set(arm, path)
    refuse_unmatched(call, None if found is None else scale_set_tag(found))
    watch([] if found is None else found.groups)
    return found


def _body(call: ArmCall) -> Json:
    if call.body is None:
        raise ArmError(
            400, "InvalidRequestContent", "The request content was empty; send a JSON object."
        )
    body = resource_members(call.body)
    refuse_newer_members(call, object_at(body, "properties"))
    return body


def _lock(path: ResourcePath) -> str:
    """Returns the key of the scale set's lock.

    A resize takes another lock while it holds this one.
    """
    return f"arm{path.id.lower()}"


def _written_reply(call: ArmCall, found: ScaleSetState, status: int) -> Reply:
    assert found.operation is not None, "a change has just begun one"
    return operation_reply(
        call, found.operation, found.roster.location, status, scale_set_json(found, call)
    )


async def _delete(arm: Arm, call: ArmCall, found: ScaleSetState) -> Operation:
    """Starts to delete all instances. Each instance gets the notice of its own model.

    The scale set is gone when its last instance is gone.
    """
    if found.is_deleting and found.operation is not None and not found.members:
        return found.operation
    events = await start_operations(arm, call, found.instances, OperationKind.DELETE)
    # The deletes come first: if they are refused or the store is down, the set is not removed.
    for group in found.groups:
        await mark_removed(arm, call, group.id)
    operation = await arm.operations.begin(call, verb="delete", target=found.id, events=events)
    record = found.record or first_record(found, arm.control.clock.now())
    record = replace(record, body=current_body(found), is_deleting=True, operation=operation.id)
    await arm.resources.put(record, by=call.by)
    return operation


ROUTES: Routes = {
    **actions.ROUTES,
    **rolling_upgrades.ROUTES,
    ("GET", "microsoft.compute", "virtualmachinescalesets"): list_scale_sets,
    ("GET", _KEY, ""): get,
    ("PUT", _KEY, ""): create_or_update,
    ("PATCH", _KEY, ""): create_or_update,
    ("DELETE", _KEY, ""): delete,
}
