"""Renders the JSON of a VM. It corrects the owner's body by the facts of the fleet."""

from fairwarning.azure_api.body_values import object_at
from fairwarning.azure_api.compute_defaults import completed_vm
from fairwarning.azure_api.etags import content_tag
from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.instance_views import provisioning_state, view_json
from fairwarning.azure_api.notice_profiles import (
    policy_json,
    read_terms,
    terms_json,
    without_newer_members,
)
from fairwarning.azure_api.operations import Operation, operation_reply
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.virtual_machines.state import (
    TYPE,
    VirtualMachineState,
    get_virtual_machine,
    vm_resource_id,
)
from fairwarning.core.identifiers import vm_id
from fairwarning.core.instants import Instant, format_rfc3339
from fairwarning.core.model import Policy, Priority, ScopeKind

_SETS = {
    ScopeKind.AVAILABILITY_SET: ("availabilitySet", "Microsoft.Compute/availabilitySets"),
    ScopeKind.SCALE_SET: ("virtualMachineScaleSet", "Microsoft.Compute/virtualMachineScaleSets"),
}


def vm_json(
    vm: FleetInstance, record: ResourceRecord | None, now: Instant, *, with_view: bool = False
) -> Json:
    body = declared_body(vm) if record is None else record.body
    body = completed_vm(body, vm.instance.name)
    properties = {
        **_with_notice(object_at(body, "properties")),
        **membership_json(vm),
        **_priority_json(vm),
        **_policy_json(vm, object_at(body, "properties")),
        "provisioningState": provisioning_state(vm),
        "vmId": vm_id(vm.scope, vm.instance),
    }
    if record is not None:
        properties["timeCreated"] = format_rfc3339(record.created_ms)
    if with_view:
        properties["instanceView"] = view_json(vm, now)
    found = {
        "name": vm.instance.name,
        "id": vm_resource_id(vm),
        "type": TYPE,
        **body,
        "location": vm.scope.roster.location,
        "tags": dict(vm.instance.tags),
        "properties": properties,
    }
    if owner := properties.get("virtualMachineScaleSet"):
        found["managedBy"] = owner["id"]
    return {**found, "etag": content_tag(found)}


def _with_notice(properties: Json) -> Json:
    """Returns the properties with the notices that are on. As on Azure, others are not shown."""
    rest = {name: value for name, value in properties.items() if name != "scheduledEventsProfile"}
    notices = terms_json(read_terms(properties))
    return {**rest, "scheduledEventsProfile": notices} if notices else rest


def declared_body(vm: FleetInstance) -> Json:
    """Returns a body for a VM that was not created through ARM. Most values are placeholders."""
    return {
        "location": vm.scope.roster.location,
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "storageProfile": {
                "osDisk": {"osType": "Linux", "createOption": "FromImage"},
                "dataDisks": [],
            },
            "osProfile": {"computerName": vm.instance.name},
            "networkProfile": {"networkInterfaces": []},
        },
    }


def membership_json(vm: FleetInstance) -> Json:
    """Returns a reference to the set that the VM is in. It is empty if the VM is in none."""
    roster = vm.scope.roster
    if roster.kind not in _SETS:
        return {}
    name, type = _SETS[roster.kind]
    return {
        name: {"id": resource_id(roster.subscription, roster.resource_group, type, roster.resource)}
    }


def _priority_json(vm: FleetInstance) -> Json:
    if vm.instance.priority is not Priority.SPOT:
        return {}
    return {
        "priority": vm.instance.priority.value,
        "evictionPolicy": vm.instance.eviction.value,
    }


def _policy_json(vm: FleetInstance, properties: Json) -> Json:
    """Returns the `scheduledEventsPolicy` of a standalone VM. It is empty for a VM in a set."""
    roster = vm.scope.roster
    policy = object_at(properties, "scheduledEventsPolicy")
    if roster.kind is not ScopeKind.VM or (not policy and roster.policy == Policy()):
        return {}
    return {"scheduledEventsPolicy": {**policy, **policy_json(roster.policy)}}


def render_vm(
    arm: Arm, call: ArmCall, found: VirtualMachineState, *, with_view: bool = False
) -> Json:
    """Renders a VM with the members that the api-version of the call knows."""
    now = arm.control.clock.now()
    body = vm_json(found.vm, found.record, now, with_view=with_view)
    return {**body, "properties": without_newer_members(call, body["properties"])}


async def written_reply(arm: Arm, call: ArmCall, status: int, operation: Operation) -> Reply:
    """Returns the reply to a PUT or PATCH. It has the current VM and the operation's URL."""
    found = await get_virtual_machine(arm, call.path)
    location = found.vm.scope.roster.location
    return operation_reply(call, operation, location, status, render_vm(arm, call, found))
