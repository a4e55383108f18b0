"""Renders the JSON of scale sets and of their instances. Pure.

Where the fleet and the owner's body disagree, the JSON shows the facts of the fleet.
"""

from fairwarning.azure_api.body_values import object_at, text_at
from fairwarning.azure_api.compute_defaults import completed_set, instance_storage
from fairwarning.azure_api.errors import not_found
from fairwarning.azure_api.etags import content_tag
from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.instance_views import provisioning_state
from fairwarning.azure_api.notice_profiles import (
    NoticeTerms,
    policy_json,
    terms_json,
    without_newer_members,
)
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.request import ArmCall, Json
from fairwarning.azure_api.scale_sets.body import MODES, primary_card
from fairwarning.azure_api.scale_sets.state import INSTANCE_TYPE, TYPE, ScaleSetState
from fairwarning.core.identifiers import computer_name, guid_of, prefix_of, vm_id
from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import Instance, Policy, Priority, Protection, Roster
from fairwarning.core.scale_sets import instance_template

_OS_PROFILE = frozenset({
    "adminUsername", "linuxConfiguration", "windowsConfiguration", "secrets",
    "allowExtensionOperations", "requireGuestProvisionSignal",
})  # fmt: skip
"""The members of a scale set's osProfile that its instances show too."""
_UNDER_WAY = {"create": "Creating", "update": "Updating", "delete": "Deleting"}
_POLICY_MEMBERS = ("approve_user_reboot", "approve_user_redeploy", "approve_all_instances_down")


def scale_set_json(found: ScaleSetState, call: ArmCall) -> Json:
    """Renders a scale set with the members that the api-version of the call knows."""
    body = current_body(found)
    record = found.record
    properties = {
        **_usual_properties(found),
        **without_newer_members(call, body["properties"]),
        "provisioningState": set_provisioning_state(found),
        "uniqueId": set_unique_id(found),
    }
    if record is not None:
        properties["timeCreated"] = format_rfc3339(record.created_ms)
    rest = {name: value for name, value in body.items() if name != "properties"}
    head = {"name": found.id.rpartition("/")[2], "id": found.id, "type": TYPE}
    return {**head, **rest, "properties": properties, "etag": scale_set_tag(found)}


def _usual_properties(found: ScaleSetState) -> Json:
    """Returns the properties that Azure adds if the owner has not set them.

    They are not in `current_body`: the owner may still choose other values.
    """
    if not found.roster.is_numbered:
        return {"singlePlacementGroup": False}
    return {"singlePlacementGroup": len(found.groups) == 1, "overprovision": True}


def scale_set_tag(found: ScaleSetState) -> str:
    record = found.record
    created = [record.unique_id, record.created_ms] if record else [guid_of(found.id.lower())]
    return content_tag({**current_body(found), "created": created})


def set_unique_id(found: ScaleSetState) -> str:
    return found.record.unique_id if found.record else guid_of(found.id.lower())


def set_provisioning_state(found: ScaleSetState) -> str:
    verb = found.operation.verb if found.operation else ""
    if not found.state.is_over:
        return _UNDER_WAY.get(verb, "Updating")
    has_failed = found.state.status == "Failed" and verb in ("create", "delete")
    return "Failed" if has_failed else "Succeeded"


def current_body(found: ScaleSetState) -> Json:
    """Returns the owner's body, corrected by the facts of the fleet, without read-only members."""
    roster = found.roster
    body = _declared_body(found) if found.record is None else found.record.body
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
    stored_policy = object_at(properties, "scheduledEventsPolicy")
    if stored_policy or _is_not_default(roster.policy):
        truth["scheduledEventsPolicy"] = {**stored_policy, **policy_json(roster.policy)}
    sku = {"tier": "Standard", **object_at(body, "sku"), "capacity": len(found.members)}
    whole = {"location": roster.location, "tags": {}, **body, "sku": sku, "properties": truth}
    return completed_set(whole)


def _declared_body(found: ScaleSetState) -> Json:
    """Returns a body for a scale set that was not created through ARM.

    It is made from the roster.
    """
    profile: Json = {
        "osProfile": {"computerNamePrefix": prefix_of(found.roster)},
        "storageProfile": {"osDisk": {"createOption": "FromImage", "osType": "Linux"}},
        "networkProfile": {"networkInterfaceConfigurations": []},
    }
    some = instance_template(found.groups)
    if some.priority is Priority.SPOT:
        profile |= {"priority": "Spot", "evictionPolicy": some.eviction.value}
    return {"tags": dict(some.tags), "properties": {"virtualMachineProfile": profile}}


def _true_profile(roster: Roster, properties: Json) -> Json:
    profile = object_at(properties, "virtualMachineProfile")
    model = roster.model
    notices = terms_json(NoticeTerms(model.terminate_notice_ms, model.reimage_notice_ms))
    rest = {name: value for name, value in profile.items() if name != "scheduledEventsProfile"}
    return {**rest, "scheduledEventsProfile": notices} if notices else rest


def _is_not_default(policy: Policy) -> bool:
    usual = Policy()
    return any(getattr(policy, each) != getattr(usual, each) for each in _POLICY_MEMBERS)


def instance_id_of(vm: FleetInstance) -> str:
    """Returns the id of an instance.

    It is the number of the instance in a uniform scale set, and its name in a flexible one.
    """
    return vm.instance.name if vm.number is None else str(vm.number)


def find_instance(found: ScaleSetState, id: str) -> FleetInstance | None:
    """Returns the instance with this id. It is None if there is none. The case does not matter."""
    known = (each for each in found.instances if instance_id_of(each).lower() == id.lower())
    return next(known, None)


def get_instance(found: ScaleSetState, path: ResourcePath) -> FleetInstance:
    """Returns the instance that the path names. Raises ArmError if there is no such instance."""
    vm = find_instance(found, path.names[1])
    if vm is None:
        name = "/".join((found.roster.resource, "virtualMachines", path.names[1]))
        raise not_found(TYPE, name, path.group)
    return vm


def instance_json(
    found: ScaleSetState, vm: FleetInstance, body: Json, view: Json | None = None
) -> Json:
    """Renders an instance. `body` is the `current_body` of its scale set."""
    own = instance_id_of(vm)
    row: Json = {
        "name": vm.instance.name,
        "id": f"{found.id}/virtualMachines/{own}",
        "type": INSTANCE_TYPE,
        "location": body["location"],
        "tags": dict(vm.instance.tags),
        "instanceId": own,
    }
    if "zones" in body:
        row["zones"] = body["zones"]
    if vm.number is None:
        more = protection_json(vm.instance) | ({} if view is None else {"instanceView": view})
        row |= {"properties": more} if more else {}
    else:
        sku = {name: value for name, value in body["sku"].items() if name != "capacity"}
        row |= {"sku": sku, "properties": _instance_properties(found, vm, body, view)}
    return {**row, "etag": content_tag(row)}


def instance_tag(found: ScaleSetState, vm: FleetInstance) -> str:
    tag: str = instance_json(found, vm, current_body(found))["etag"]
    return tag


def _instance_properties(
    found: ScaleSetState, vm: FleetInstance, body: Json, view: Json | None
) -> Json:
    profile = object_at(body, "properties", "virtualMachineProfile")
    os_profile = {n: v for n, v in object_at(profile, "osProfile").items() if n in _OS_PROFILE}
    properties: Json = {
        "latestModelApplied": vm.scope.roster.latest_model_applied(vm.instance),
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "provisioningState": provisioning_state(vm),
        "hardwareProfile": {"vmSize": text_at(body, "sku", "name")},
        "vmId": vm_id(vm.scope, vm.instance),
        "storageProfile": instance_storage(profile, vm.instance.name),
        "osProfile": {
            "computerName": computer_name(vm.scope.roster, vm.instance),
            "allowExtensionOperations": True,
            "requireGuestProvisionSignal": True,
            **os_profile,
        },
        "networkProfileConfiguration": object_at(profile, "networkProfile"),
        "networkProfile": {"networkInterfaces": _interfaces(found, vm, profile)},
    }
    properties |= protection_json(vm.instance)
    return properties if view is None else {**properties, "instanceView": view}


def _interfaces(found: ScaleSetState, vm: FleetInstance, profile: Json) -> list[Json]:
    return [{"id": interface_id(found, vm, profile)}] if vm.instance.addresses else []


def interface_id(found: ScaleSetState, vm: FleetInstance, profile: Json) -> str:
    """Returns the id of the only network interface of an instance."""
    name = primary_card(profile).get("name") or "nic"
    return f"{found.id}/virtualMachines/{instance_id_of(vm)}/networkInterfaces/{name}"


def protection_json(instance: Instance) -> Json:
    """Renders the protection of an instance. It is empty if the instance has none."""
    if not instance.protected_from:
        return {}
    return {
        "protectionPolicy": {
            "protectFromScaleIn": Protection.SCALE_IN in instance.protected_from,
            "protectFromScaleSetActions": Protection.SET_ACTIONS in instance.protected_from,
        }
    }
