"""Resource groups."""

import re
import uuid

from msgspec.structs import replace

from fairwarning.azure_api import group_state
from fairwarning.azure_api.body_values import location_of, tags_of, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import machines_in
from fairwarning.azure_api.group_state import TYPE, Group, refuse_going
from fairwarning.azure_api.inventory import MACHINES, SCALE_SETS, scopes_in
from fairwarning.azure_api.lists import conditions, first, has_tag, listed
from fairwarning.azure_api.operations import accepted
from fairwarning.azure_api.paths import resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.scale_sets import handlers as scale_sets
from fairwarning.azure_api.virtual_machines import handlers as virtual_machines
from fairwarning.core.model import EventId, OperationKind, Scope, ScopeKind
from fairwarning.engine.protocols import RecordChanged
from fairwarning.operator_api.scale_sets import operate_all

NAME_CHARS_MAX = 90
_STRANGE = re.compile(r"[^A-Za-z0-9_.()-]")
_LOCATION = re.compile(r"[a-z0-9_-]{1,90}")


async def put(arm: Arm, call: ArmCall) -> Reply:
    name = call.path.name
    refuse_name(name)
    location = _location(call.body or {})
    body = {"location": location, **_owned(call.body or {})}
    found = await group_state.standing(arm, call.path.subscription, name)
    if found is not None:
        refuse_going(found)
        await _refuse_moved(arm, found, location)
    kept = await _keep(arm, call, found or _new(call, name), body)
    return Reply(201 if found is None else 200, _shown(kept, location))


async def patch(arm: Arm, call: ArmCall) -> Reply:
    found = await _found(arm, call)
    refuse_going(found)
    location = await group_state.location_of(arm, found)
    before = {} if found.kept is None else found.kept.body
    body = {**before, "location": location, **_owned(call.body or {})}
    return Reply(200, _shown(await _keep(arm, call, found, body), location))


async def show(arm: Arm, call: ArmCall) -> Reply:
    return Reply(200, await group_json(arm, await _found(arm, call)))


async def is_there(arm: Arm, call: ArmCall) -> Reply:
    await _found(arm, call)
    return Reply(204)


async def list_all(arm: Arm, call: ArmCall) -> Reply:
    wanted = conditions(call, ("tagName", "tagValue"))
    groups = group_state.groups_of(arm, call.path.subscription)
    rows = [await group_json(arm, each) async for each in groups]
    return await listed(call, first(call, (row for row in rows if has_tag(row["tags"], wanted))))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    found = await _found(arm, call)
    location = await group_state.location_of(arm, found)
    if found.is_going and found.kept is not None:
        operation = await arm.operations.find(found.kept.operation)
        if operation is not None:
            return accepted(call, operation, location)
    events = await delete_all(arm, call, found.name)
    operation = await arm.operations.begin(call, verb="delete", target=found.id, events=events)
    kept = found.kept or _kept(arm, found, {"location": location})
    await arm.shelf.put(replace(kept, is_going=True, operation=operation.id), by=call.by)
    # If there was nothing to delete first, nothing is left of it at once.
    await group_state.standing(arm, call.path.subscription, found.name)
    return accepted(call, operation, location)


async def group_json(arm: Arm, group: Group) -> Json:
    location = await group_state.location_of(arm, group)
    kept = group.kept or _kept(arm, group, {})
    return _shown(kept, location, is_going=group.is_going)


async def _found(arm: Arm, call: ArmCall) -> Group:
    return await group_state.needed(arm, call.path.subscription, call.path.group)


def _new(call: ArmCall, name: str) -> Group:
    return Group(group_state.group_id(call.path.subscription, name), name, None)


async def _keep(arm: Arm, call: ArmCall, group: Group, body: Json) -> Kept:
    kept = group.kept or _kept(arm, group, body)
    return await arm.shelf.put(replace(kept, body=body), by=call.by)


def _kept(arm: Arm, group: Group, body: Json) -> Kept:
    return Kept(
        id=group.id,
        type=TYPE,
        name=group.name,
        body=body,
        created_ms=arm.control.clock.now(),
        unique_id=str(uuid.uuid4()),
    )


def _owned(body: Json) -> Json:
    """What only the owner knows of a group."""
    found: Json = {}
    if "tags" in body:
        found["tags"] = tags_of(body)
    if manager := text_at(body, "managedBy"):
        found["managedBy"] = manager
    return found


def _shown(kept: Kept, location: str, *, is_going: bool = False) -> Json:
    shown: Json = {
        "id": kept.id,
        "name": kept.name,
        "type": TYPE,
        "location": location,
        "tags": kept.body.get("tags", {}),
        "properties": {"provisioningState": "Deleting" if is_going else "Succeeded"},
    }
    if manager := kept.body.get("managedBy"):
        shown["managedBy"] = manager
    return shown


def _location(body: Json) -> str:
    location = location_of(body)
    if not _LOCATION.fullmatch(location):
        raise ArmError(
            400,
            "LocationNotAvailableForResourceGroup",
            f"The provided location '{location[:100]}' is not available for resource group. Use "
            "letters, digits, '-' and '_', as in westeurope.",
        )
    return location


async def _refuse_moved(arm: Arm, group: Group, location: str) -> None:
    before = await group_state.location_of(arm, group)
    if before.lower() != location:
        raise ArmError(
            409,
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{location}'. The Resource group already exists in "
            f"location '{before}'.",
        )


def refuse_name(name: str) -> None:
    """Azure's rule, but for letters of other alphabets."""
    strange = "".join(dict.fromkeys(_STRANGE.findall(name)))
    if strange:
        problem = f"has these invalid characters: '{strange[:20]}'"
    elif len(name) > NAME_CHARS_MAX:
        problem = f"is longer than {NAME_CHARS_MAX} characters"
    elif name.endswith("."):
        problem = "ends with a period"
    else:
        return
    raise ArmError(
        400,
        "InvalidResourceGroup",
        f"The provided resource group name '{name[:100]}' {problem}. The name can only be a "
        "letter, digit, '-', '.', '(', ')' or '_', with at most 90 of them and no '.' at the end.",
    )


def _retried(handler: Handler) -> Handler:
    """Somebody else may change the group in between; then what he said is the new beginning."""

    async def answer(arm: Arm, call: ArmCall) -> Reply:
        while True:
            try:
                return await handler(arm, call)
            except RecordChanged:
                continue

    return answer


_KEY = TYPE.replace("resourceGroups", "subscriptions/resourceGroups").lower()


async def delete_all(arm: Arm, call: ArmCall, group: str) -> list[EventId]:
    """Deletes all instances of the group, each in the way of its own type.

    Returns the events of all deletions; when they are over, the group is empty.
    """
    scopes = [each async for each in scopes_in(arm, call.path.subscription, group)]
    events: list[EventId] = []
    # A scale set has several scopes and is deleted as a whole, so each id counts once.
    for id in dict.fromkeys(id for scope in scopes for id in _resources(scope)):
        path = resource_path(id)
        is_set = path.key == SCALE_SETS.lower()
        begin = scale_sets.begin_delete if is_set else virtual_machines.begin_delete
        deletion = await begin(arm, call, path)
        events += () if deletion is None else deletion.operation.events
    for scope in scopes:
        if scope.roster.kind is ScopeKind.CLOUD_SERVICE:
            machines = [(scope.id, each.name) for each in scope.roster.live]
            kind = OperationKind.DELETE
            events += await operate_all(arm.control, machines, kind, by=call.by, why=call.why)
    return list(dict.fromkeys(events))


def _resources(scope: Scope) -> list[str]:
    """The ids of what to delete: a scale set deletes its own instances."""
    roster = scope.roster
    place = roster.subscription, roster.resource_group
    if roster.kind is ScopeKind.SCALE_SET:
        return [resource_id(*place, SCALE_SETS, roster.resource)]
    return [resource_id(*place, MACHINES, each.instance.name) for each in machines_in(scope)]


ROUTES: Routes = {
    ("GET", "microsoft.resources/subscriptions", "resourcegroups"): list_all,
    ("PUT", _KEY, ""): _retried(put),
    ("PATCH", _KEY, ""): _retried(patch),
    ("GET", _KEY, ""): show,
    ("HEAD", _KEY, ""): is_there,
    ("DELETE", _KEY, ""): _retried(delete),
}
