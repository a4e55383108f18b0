"""A VM as ARM shows it: the fleet's facts over what its owner said. Pure."""

from fairwarning.control.arm.bodies import object_at
from fairwarning.control.arm.call import Json
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.instance_views import provisioning_state, view_json
from fairwarning.control.arm.kept_machines import TYPE, machine_id
from fairwarning.control.arm.paths import resource_id
from fairwarning.control.arm.profiles import policy_json
from fairwarning.control.arm.shelf import Kept
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
