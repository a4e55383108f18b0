"""Scale sets, as ARM shows them. Pure.

What the fleet knows is shown as the fleet has it, whatever the owner said last.
"""

from fairwarning.azure_api.body_values import object_at, text_at
from fairwarning.azure_api.errors import not_found
from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.instance_views import provisioning_state
from fairwarning.azure_api.notice_profiles import (
    Terms,
    policy_json,
    with_terms,
    without_too_new,
)
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import ArmCall, Json
from fairwarning.azure_api.scale_sets.body import MODES
from fairwarning.azure_api.scale_sets.state import INSTANCE_TYPE, TYPE, Standing
from fairwarning.core.identifiers import computer_name, guid_of, prefix_of, vm_id
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import Policy, Priority, Roster

_UNDER_WAY = {"create": "Creating", "update": "Updating", "delete": "Deleting"}
_SETS_OF_RULES = ("approve_user_reboot", "approve_user_redeploy", "approve_all_instances_down")


def set_json(found: Standing, call: ArmCall) -> Json:
    """As the api-version of the call may know it."""
    body = true_body(found)
    kept = found.kept
    properties = {
        **without_too_new(call, body["properties"]),
        "provisioningState": state_of_set(found),
        "uniqueId": kept.unique_id if kept else guid_of(found.id.lower()),
    }
    if kept is not None:
        properties["timeCreated"] = format_rfc3339(kept.created_ms)
    rest = {name: value for name, value in body.items() if name != "properties"}
    head = {"name": found.id.rpartition("/")[2], "id": found.id, "type": TYPE}
    return {**head, **rest, "properties": properties}


def state_of_set(found: Standing) -> str:
    verb = found.operation.verb if found.operation else ""
    if not found.state.is_over:
        return _UNDER_WAY.get(verb, "Updating")
    has_failed = found.state.status == "Failed" and verb in ("create", "delete")
    return "Failed" if has_failed else "Succeeded"


def true_body(found: Standing) -> Json:
    """What the owner said, with all that the fleet knows better; nothing that is read-only."""
    roster = found.roster
    body = _declared_body(found) if found.kept is None else found.kept.body
    properties = object_at(body, "properties")
    policy = object_at(properties, "upgradePolicy")
    mode = MODES.get(text_at(policy, "mode").lower(), "Manual")
    truth: Json = {
        **properties,
        "orchestrationMode": "Uniform" if roster.is_numbered else "Flexible",
        "upgradePolicy": {**policy, "mode": mode},
        "platformFaultDomainCount": roster.fault_domains,
        "virtualMachineProfile": _true_profile(roster, properties),
    }
    kept_policy = object_at(properties, "scheduledEventsPolicy")
    if kept_policy or _says_something(roster.policy):
        truth["scheduledEventsPolicy"] = {**kept_policy, **policy_json(roster.policy)}
    sku = {"tier": "Standard", **object_at(body, "sku"), "capacity": len(found.members)}
    return {"location": roster.location, "tags": {}, **body, "sku": sku, "properties": truth}


def _declared_body(found: Standing) -> Json:
    """Of a set that was not made in ARM: no more than its roster says."""
    profile: Json = {
        "osProfile": {"computerNamePrefix": prefix_of(found.roster)},
        "storageProfile": {"osDisk": {"createOption": "FromImage", "osType": "Linux"}},
        "networkProfile": {"networkInterfaceConfigurations": []},
    }
    some = next(iter(found.machines)).instance
    if some.priority is Priority.SPOT:
        profile |= {"priority": "Spot", "evictionPolicy": some.eviction.value}
    return {"tags": dict(some.tags), "properties": {"virtualMachineProfile": profile}}


def _true_profile(roster: Roster, properties: Json) -> Json:
    profile = object_at(properties, "virtualMachineProfile")
    kept = object_at(profile, "scheduledEventsProfile")
    model = roster.model
    told = with_terms(kept, Terms(model.terminate_notice_ms, model.reimage_notice_ms))
    rest = {name: value for name, value in profile.items() if name != "scheduledEventsProfile"}
    return {**rest, "scheduledEventsProfile": told} if told else rest


def _says_something(policy: Policy) -> bool:
    usual = Policy()
    return any(getattr(policy, each) != getattr(usual, each) for each in _SETS_OF_RULES)


# Instances of scale sets, as ARM shows them. Pure.
_OS_PROFILE = frozenset({"adminUsername", "linuxConfiguration", "windowsConfiguration"})


def instance_id_of(machine: Machine) -> str:
    """A number in a uniform set, a name in a flexible one."""
    return machine.instance.name if machine.number is None else str(machine.number)


def called(found: Standing, id: str) -> Machine | None:
    """Whose instance id this is, in whatever case."""
    known = (each for each in found.machines if instance_id_of(each).lower() == id.lower())
    return next(known, None)


def one_called(found: Standing, path: ResourcePath) -> Machine:
    """Whom the second name of the path means. Raises ArmError."""
    machine = called(found, path.names[1])
    if machine is None:
        name = "/".join((found.roster.resource, "virtualMachines", path.names[1]))
        raise not_found(TYPE, name, path.group)
    return machine


def instance_json(found: Standing, machine: Machine, body: Json, view: Json | None = None) -> Json:
    """`body` is the true one of the set."""
    own = instance_id_of(machine)
    shown: Json = {
        "name": machine.instance.name,
        "id": f"{found.id}/virtualMachines/{own}",
        "type": INSTANCE_TYPE,
        "location": body["location"],
        "tags": dict(machine.instance.tags),
        "instanceId": own,
    }
    if "zones" in body:
        shown["zones"] = body["zones"]
    if machine.number is None:
        return shown if view is None else {**shown, "properties": {"instanceView": view}}
    sku = {name: value for name, value in body["sku"].items() if name != "capacity"}
    return {**shown, "sku": sku, "properties": _instance_properties(found, machine, body, view)}


def _instance_properties(found: Standing, machine: Machine, body: Json, view: Json | None) -> Json:
    profile = object_at(body, "properties", "virtualMachineProfile")
    os_profile = {n: v for n, v in object_at(profile, "osProfile").items() if n in _OS_PROFILE}
    properties: Json = {
        "latestModelApplied": machine.scope.roster.latest_model_applied(machine.instance),
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "provisioningState": provisioning_state(machine),
        "hardwareProfile": {"vmSize": text_at(body, "sku", "name")},
        "vmId": vm_id(machine.scope, machine.instance),
        "storageProfile": object_at(profile, "storageProfile"),
        "osProfile": {
            "computerName": computer_name(machine.scope.roster, machine.instance),
            **os_profile,
        },
        "networkProfileConfiguration": object_at(profile, "networkProfile"),
    }
    return properties if view is None else {**properties, "instanceView": view}
