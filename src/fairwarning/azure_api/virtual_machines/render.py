"""A VM as ARM shows it: the fleet's facts over what its owner said. Pure."""

from fairwarning.azure_api.body_values import object_at
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.instance_views import provisioning_state, view_json
from fairwarning.azure_api.notice_profiles import policy_json, without_too_new
from fairwarning.azure_api.operations import Operation, began
from fairwarning.azure_api.paths import ResourcePath, resource_id
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.state import (
    TYPE,
    Standing,
    machine_id,
    standing,
)
from fairwarning.core.identifiers import vm_id
from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.model import Policy, Priority, ScopeKind

_SETS = {
    ScopeKind.AVAILABILITY_SET: ("availabilitySet", "Microsoft.Compute/availabilitySets"),
    ScopeKind.SCALE_SET: ("virtualMachineScaleSet", "Microsoft.Compute/virtualMachineScaleSets"),
}


def machine_json(
    machine: Machine, kept: Kept | None, now: Instant, *, with_view: bool = False
) -> Json:
    body = declared_body(machine) if kept is None else kept.body
    properties = {
        **object_at(body, "properties"),
        **membership_json(machine),
        **_priority_json(machine),
        **_policy_json(machine, object_at(body, "properties")),
        "provisioningState": provisioning_state(machine),
        "vmId": vm_id(machine.scope, machine.instance),
    }
    if kept is not None:
        properties["timeCreated"] = format_rfc3339(kept.created_ms)
    if with_view:
        properties["instanceView"] = view_json(machine, now)
    return {
        "name": machine.instance.name,
        "id": machine_id(machine),
        "type": TYPE,
        **body,
        "location": machine.scope.roster.location,
        "tags": dict(machine.instance.tags),
        "properties": properties,
    }


def declared_body(machine: Machine) -> Json:
    """Of a VM that ARM did not make: what can be said of it all the same."""
    return {
        "location": machine.scope.roster.location,
        "properties": {
            "hardwareProfile": {},
            "storageProfile": {
                "osDisk": {"osType": "Linux", "createOption": "FromImage"},
                "dataDisks": [],
            },
            "osProfile": {"computerName": machine.instance.name},
            "networkProfile": {"networkInterfaces": []},
        },
    }


def membership_json(machine: Machine) -> Json:
    """The set that it is in, if any."""
    roster = machine.scope.roster
    if roster.kind not in _SETS:
        return {}
    name, type = _SETS[roster.kind]
    return {
        name: {"id": resource_id(roster.subscription, roster.resource_group, type, roster.resource)}
    }


def _priority_json(machine: Machine) -> Json:
    if machine.instance.priority is not Priority.SPOT:
        return {}
    return {
        "priority": machine.instance.priority.value,
        "evictionPolicy": machine.instance.eviction.value,
    }


def _policy_json(machine: Machine, properties: Json) -> Json:
    """A member has none of its own."""
    roster = machine.scope.roster
    said = object_at(properties, "scheduledEventsPolicy")
    if roster.kind is not ScopeKind.VM or (not said and roster.policy == Policy()):
        return {}
    return {"scheduledEventsPolicy": {**said, **policy_json(roster.policy)}}


# Answers that show a VM.
def shown(arm: Arm, call: ArmCall, found: Standing, *, with_view: bool = False) -> Json:
    """As the api-version of the call knows it."""
    now = arm.control.clock.now()
    body = machine_json(found.machine, found.kept, now, with_view=with_view)
    return {**body, "properties": without_too_new(call, body["properties"])}


async def written(arm: Arm, call: ArmCall, status: int, operation: Operation) -> Reply:
    """The answer to a PUT or PATCH: the VM as it is now, and where to ask how far it is."""
    found = await existing(arm, call.path)
    location = found.machine.scope.roster.location
    return began(call, operation, location, status, shown(arm, call, found))


async def existing(arm: Arm, path: ResourcePath) -> Standing:
    found = await standing(arm, path)
    if found is None:
        raise not_found(TYPE, path.name, path.group)
    return found


def refuse_going(call: ArmCall, found: Standing) -> None:
    if found.is_going:
        raise ArmError(
            409,
            "OperationNotAllowed",
            f"Operation '{call.path.tail or call.method}' is not allowed on VM "
            f"'{found.machine.instance.name}' since the VM is marked for deletion. You can only "
            "retry the Delete operation (or wait for an ongoing one to complete).",
        )
