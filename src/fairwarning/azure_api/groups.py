"""These handlers create, get, list, update and delete resource groups."""

import re

from msgspec.structs import replace

from fairwarning.azure_api import group_state
from fairwarning.azure_api.body_values import location_of, tags_of, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.etags import content_tag, refuse_unmatched, retried, tag_header
from fairwarning.azure_api.fleet_view import SCALE_SETS, VIRTUAL_MACHINES, scopes_in, vms_in
from fairwarning.azure_api.group_state import TYPE, Group, refuse_deleting
from fairwarning.azure_api.lists import first_rows, has_tag, list_reply, read_filter
from fairwarning.azure_api.operations import accepted
from fairwarning.azure_api.paths import resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.azure_api.scale_sets import handlers as scale_sets
from fairwarning.azure_api.virtual_machines import handlers as virtual_machines
from fairwarning.core.model import EventId, OperationKind, Scope, ScopeKind
from fairwarning.operator_api.scale_sets import operate_all

NAME_CHARS_MAX = 90
_STRANGE = re.compile(r"[^A-Za-z0-9_.()-]")
_LOCATION = re.compile(r"[a-z0-9_-]{1,90}")


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    name = call.path.name
    refuse_name(name)
    location = _location(call.body or {})
    body = {"location": location, **_owner_members(call.body or {})}
    found = await group_state.find_group(arm, call.path.subscription, name)
    refuse_unmatched(call, None if found is None else await _tag(arm, found))
    if found is not None:
        refuse_deleting(found)
        await _refuse_moved(arm, found, location)
    group = found or Group(group_state.group_id(call.path.subscription, name), name, None)
    record = await _store(arm, call, group, body)
    return Reply(201 if found is None else 200, _group_json(record, location))


async def update(arm: Arm, call: ArmCall) -> Reply:
    found = await _get_group(arm, call)
    refuse_unmatched(call, await _tag(arm, found))
    refuse_deleting(found)
    location = await group_state.location_of(arm, found)
    before = {} if found.record is None else found.record.body
    body = {**before, "location": location, **_owner_members(call.body or {})}
    return Reply(200, _group_json(await _store(arm, call, found, body), location))


async def get(arm: Arm, call: ArmCall) -> Reply:
    found = await _get_group(arm, call)
    return Reply(200, await group_json(arm, found), tag_header(await _tag(arm, found)))


async def exists(arm: Arm, call: ArmCall) -> Reply:
    await _get_group(arm, call)
    return Reply(204)


async def list_groups(arm: Arm, call: ArmCall) -> Reply:
    wanted = read_filter(call, ("tagName", "tagValue"))
    groups = group_state.iterate_groups(arm, call.path.subscription)
    rows = [await group_json(arm, each) async for each in groups]
    return await list_reply(
        call, first_rows(call, (row for row in rows if has_tag(row["tags"], wanted)))
    )


async def delete(arm: Arm, call: ArmCall) -> Reply:
    found = await _get_group(arm, call)
    refuse_unmatched(call, await _tag(arm, found))
    location = await group_state.location_of(arm, found)
    if found.is_deleting and found.record is not None:
        operation = await arm.operations.find(found.record.operation)
        if operation is not None:
            return accepted(call, operation, location)
    events = await delete_all(arm, call.without_conditions(), found.name)
    operation = await arm.operations.begin(call, verb="delete", target=found.id, events=events)
    record = found.record or _new_record(arm, found, {"location": location})
    await arm.resources.put(replace(record, is_deleting=True, operation=operation.id), by=call.by)
    # If the group had no instances, this lookup deletes its records at once.
    await group_state.find_group(arm, call.path.subscription, found.name)
    return accepted(call, operation, location)


async def delete_all(arm: Arm, call: ArmCall, group: str) -> list[EventId]:
    """Starts to delete all VMs, scale sets and instances of cloud services in the group.

    Returns the events of all deletions. When these events are over, the group is empty.
    """
    scopes = [each async for each in scopes_in(arm, call.path.subscription, group)]
    events: list[EventId] = []
    # A scale set can have several scopes but is deleted as a whole, so duplicate ids are dropped.
    for id in dict.fromkeys(id for scope in scopes for id in _resources(scope)):
        path = resource_path(id)
        is_set = path.key == SCALE_SETS.lower()
        begin = scale_sets.begin_delete if is_set else virtual_machines.begin_delete
        deletion = await begin(arm, call, path)
        events += () if deletion is None else deletion.operation.events
    for scope in scopes:
        if scope.roster.kind is ScopeKind.CLOUD_SERVICE:
            instances = [(scope.id, each.name) for each in scope.roster.live]
            kind = OperationKind.DELETE
            events += await operate_all(arm.control, instances, kind, by=call.by, why=call.why)
    return list(dict.fromkeys(events))


def _resources(scope: Scope) -> list[str]:
    """Returns the ids of the resources to delete.

    For a scale set this is only its own id, because a scale set deletes its instances.
    """
    roster = scope.roster
    place = roster.subscription, roster.resource_group
    if roster.kind is ScopeKind.SCALE_SET:
        return [resource_id(*place, SCALE_SETS, roster.resource)]
    return [resource_id(*place, VIRTUAL_MACHINES, each.instance.name) for each in vms_in(scope)]


async def group_json(arm: Arm, group: Group) -> Json:
    location = await group_state.location_of(arm, group)
    record = group.record or _new_record(arm, group, {})
    return _group_json(record, location, is_deleting=group.is_deleting)


async def _tag(arm: Arm, group: Group) -> str:
    """Returns the ETag of a group. As on Azure, the body of the group does not contain it."""
    return content_tag(await group_json(arm, group))


async def _get_group(arm: Arm, call: ArmCall) -> Group:
    return await group_state.get_group(arm, call.path.subscription, call.path.group)


async def _store(arm: Arm, call: ArmCall, group: Group, body: Json) -> ResourceRecord:
    record = group.record or _new_record(arm, group, body)
    return await arm.resources.put(replace(record, body=body), by=call.by)


def _new_record(arm: Arm, group: Group, body: Json) -> ResourceRecord:
    return new_record(arm.control.clock.now(), id=group.id, type=TYPE, name=group.name, body=body)


def _owner_members(body: Json) -> Json:
    """Returns the members of a group's body that are stored. These are its tags and its manager."""
    found: Json = {}
    if "tags" in body:
        found["tags"] = tags_of(body)
    if manager := text_at(body, "managedBy"):
        found["managedBy"] = manager
    return found


def _group_json(record: ResourceRecord, location: str, *, is_deleting: bool = False) -> Json:
    body: Json = {
        "id": record.id,
        "name": record.name,
        "type": TYPE,
        "location": location,
        "tags": record.body.get("tags", {}),
        "properties": {"provisioningState": "Deleting" if is_deleting else "Succeeded"},
    }
    if manager := record.body.get("managedBy"):
        body["managedBy"] = manager
    return body


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
    """Raises ArmError if the name is not valid.

    The rule is Azure's, except that letters of other alphabets are refused too.
    """
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


_KEY = TYPE.replace("resourceGroups", "subscriptions/resourceGroups").lower()


ROUTES: Routes = {
    ("GET", "microsoft.resources/subscriptions", "resourcegroups"): list_groups,
    ("PUT", _KEY, ""): retried(create_or_update),
    ("PATCH", _KEY, ""): retried(update),
    ("GET", _KEY, ""): get,
    ("HEAD", _KEY, ""): exists,
    ("DELETE", _KEY, ""): retried(delete),
}
