"""Instances of scale sets, as ARM shows them. Pure.

Those of a uniform set are whole resources. Those of a flexible set are VMs of their own, and
only their place is shown here.
"""

from fairwarning.control.arm.bodies import object_at, text_at
from fairwarning.control.arm.call import Json
from fairwarning.control.arm.errors import not_found
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.instance_views import provisioning_state
from fairwarning.control.arm.kept_scale_sets import INSTANCE_TYPE, TYPE, Standing
from fairwarning.control.arm.paths import ResourcePath
from fairwarning.core.identifiers import computer_name, vm_id

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
