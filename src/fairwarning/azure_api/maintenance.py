"""These handlers keep maintenance configurations and their assignments, and apply updates.

An update is a pending maintenance event of the platform. To apply it is to approve it, so that it
starts at once. The windows of a configuration are stored, but have no effect.
"""

from msgspec.structs import replace as with_fields

from fairwarning.azure_api.api_versions import call_to
from fairwarning.azure_api.availability_sets import find_availability_set
from fairwarning.azure_api.body_values import object_at, resource_members, text_at
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.etags import record_tag, refuse_unmatched_record, retried, tag_header
from fairwarning.azure_api.fleet_view import FleetInstance, find_vm
from fairwarning.azure_api.instance_views import pending_maintenance
from fairwarning.azure_api.operations import OperationState
from fairwarning.azure_api.paths import ResourcePath, find_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.azure_api.scale_sets.actions import approve_maintenance
from fairwarning.azure_api.scale_sets.render import get_instance
from fairwarning.azure_api.scale_sets.state import get_scale_set
from fairwarning.azure_api.stored_resource_handlers import StoredKind
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import Event, EventType
from fairwarning.notifications.maintenance_events import ASSIGNMENTS

CONFIGURATIONS = "Microsoft.Maintenance/maintenanceConfigurations"
UPDATES = "Microsoft.Maintenance/applyUpdates"
SCOPES = ("Host", "Resource", "OSImage", "Extension", "InGuestPatch", "SQLDB", "SQLManagedInstance")
_IMPACTS = {
    EventType.FREEZE: "Freeze",
    EventType.REBOOT: "Restart",
    EventType.REDEPLOY: "Redeploy",
}
_STATUS = {"InProgress": "InProgress", "Succeeded": "Completed"}


async def _check(_: Arm, __: ArmCall, body: Json) -> None:
    properties = object_at(body, "properties")
    scope = text_at(properties, "maintenanceScope")
    if scope.lower() not in {"", *map(str.lower, SCOPES)}:
        raise _invalid(f"The maintenanceScope '{scope[:40]}' is unknown; use one of {SCOPES}.")
    window = object_at(properties, "maintenanceWindow")
    for name in ("startDateTime", "duration", "timeZone", "recurEvery", "expirationDateTime"):
        text_at(window, name)


def _properties(record: ResourceRecord) -> Json:
    return {"visibility": "Custom", **object_at(record.body, "properties")}


CONFIGURATION = StoredKind(type=CONFIGURATIONS, check=_check, render=_properties)


async def assign(arm: Arm, call: ArmCall) -> Reply:
    owner = _owner(call)
    await arm.answer(call_to(call, owner, "GET"))
    properties = object_at(resource_members(call.body), "properties")
    wanted = text_at(properties, "maintenanceConfigurationId")
    path = find_path(wanted)
    if path is None or path.key != CONFIGURATIONS.lower():
        raise _invalid("maintenanceConfigurationId must be the id of a maintenance configuration.")
    configuration = await CONFIGURATION.find(arm, path)
    before = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, before)
    record = before or new_record(
        arm.control.clock.now(), id=call.path.id, type=ASSIGNMENTS, name=call.path.name, body={}
    )
    stored = {"maintenanceConfigurationId": configuration.id, "resourceId": owner.id}
    body = {"location": configuration.body["location"], "properties": stored}
    record = await arm.resources.put(with_fields(record, body=body), by=call.by)
    return _assignment_reply(201 if before is None else 200, record)


async def get_assignment(arm: Arm, call: ArmCall) -> Reply:
    record = await arm.resources.find(call.path.id)
    if record is None:
        raise not_found(ASSIGNMENTS, call.path.name, call.path.group)
    return _assignment_reply(200, record)


async def delete_assignment(arm: Arm, call: ArmCall) -> Reply:
    record = await arm.resources.find(call.path.id)
    refuse_unmatched_record(call, record)
    if record is None:
        return Reply(204)
    await arm.resources.delete(record, by=call.by)
    return Reply(200, _assignment_json(record))


async def list_assignments(arm: Arm, call: ArmCall) -> Reply:
    """Lists the assignments of a resource, or of everything in a group or subscription."""
    scope = call.path.parent.id if call.path.parent else call.path.place
    records = arm.resources.list_below(scope)
    found = [_assignment_json(each) async for each in records if each.type == ASSIGNMENTS]
    return Reply(200, {"value": found})


def _assignment_reply(status: int, record: ResourceRecord) -> Reply:
    return Reply(status, _assignment_json(record), tag_header(record_tag(record)))


def _assignment_json(record: ResourceRecord) -> Json:
    return {"id": record.id, "name": record.name, "type": ASSIGNMENTS, **record.body}


async def list_updates(arm: Arm, call: ArmCall) -> Reply:
    owner = _owner(call)
    found = {
        event.id: event for vm in await _instances(arm, owner) for event in pending_maintenance(vm)
    }
    rows = [_update_json(each, owner.id) for each in found.values()]
    return Reply(200, {"value": sorted(rows, key=lambda each: str(each["notBefore"]))})


def _update_json(event: Event, owner: str) -> Json:
    return {
        "maintenanceScope": "Host",
        "impactType": _IMPACTS[event.type],
        "status": "Pending",
        "impactDurationInSec": max(event.duration_s, 0),
        "notBefore": format_rfc3339(event.not_before_ms),
        "properties": {"resourceId": owner},
    }


async def apply(arm: Arm, call: ArmCall) -> Reply:
    """Approves all pending maintenance of the resource."""
    if call.path.name.lower() != "default":
        raise _invalid("Only 'default' can be applied; an update is cancelled by its operator.")
    owner = _owner(call)
    events = await approve_maintenance(arm, call, await _instances(arm, owner))
    operation = await arm.operations.begin(
        call, verb="applyUpdates", target=owner.id, events=events
    )
    state = await arm.operations.state(operation)
    return Reply(201, _apply_json(owner.id, operation.id, state))


async def get_apply(arm: Arm, call: ArmCall) -> Reply:
    owner = _owner(call)
    operation = await arm.operations.find(call.path.name)
    if operation is None or operation.target.lower() != owner.id.lower():
        raise not_found(UPDATES, call.path.name, call.path.group)
    return Reply(200, _apply_json(owner.id, operation.id, await arm.operations.state(operation)))


def _apply_json(owner: str, name: str, state: OperationState) -> Json:
    properties: Json = {
        "status": _STATUS.get(state.status, "NoUpdatesPending"),
        "resourceId": owner,
    }
    if state.ended_ms is not None:
        properties["lastUpdateTime"] = format_rfc3339(state.ended_ms)
    return {
        "id": f"{owner}/providers/{UPDATES}/{name}",
        "name": name,
        "type": UPDATES,
        "properties": properties,
    }


async def _instances(arm: Arm, owner: ResourcePath) -> list[FleetInstance]:
    """Returns the instances of the resource. Raises ArmError if there is no such resource."""
    place = owner.subscription, owner.group, owner.name
    match owner.key:
        case "microsoft.compute/virtualmachines":
            vm = await find_vm(arm, *place)
            if vm is not None:
                return [vm]
        case "microsoft.compute/virtualmachinescalesets":
            return (await get_scale_set(arm, owner)).instances
        case "microsoft.compute/virtualmachinescalesets/virtualmachines":
            return [get_instance(await get_scale_set(arm, owner), owner)]
        case "microsoft.compute/availabilitysets":
            found = await find_availability_set(arm, *place)
            if found is not None:
                return [FleetInstance(found.scope, each) for each in found.scope.roster.live]
        case _:
            raise _invalid(f"The resource type '{owner.type}' has no maintenance here.")
    raise not_found(owner.type, owner.name, owner.group)


def _owner(call: ArmCall) -> ResourcePath:
    if call.path.parent is None:
        raise _invalid("Name the resource before /providers/Microsoft.Maintenance.")
    return call.path.parent


def _invalid(message: str) -> ArmError:
    return ArmError(400, "BadRequest", message)


ROUTES: Routes = {
    **CONFIGURATION.routes(),
    ("GET", "microsoft.maintenance", "configurationassignments"): list_assignments,
    ("PUT", ASSIGNMENTS.lower(), ""): retried(assign),
    ("GET", ASSIGNMENTS.lower(), ""): get_assignment,
    ("DELETE", ASSIGNMENTS.lower(), ""): retried(delete_assignment),
    ("GET", "microsoft.maintenance", "updates"): list_updates,
    ("PUT", UPDATES.lower(), ""): apply,
    ("GET", UPDATES.lower(), ""): get_apply,
}
