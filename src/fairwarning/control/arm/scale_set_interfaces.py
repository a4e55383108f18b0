"""The interfaces of a scale set's instances, where their owner reads their addresses."""

from fairwarning.control.arm import listing
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply, Routes
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.kept_scale_sets import INSTANCE_TYPE, TYPE, Standing, needed
from fairwarning.control.arm.scale_set_instance_json import instance_id_of, one_called
from fairwarning.control.arm.scale_set_json import true_body
from fairwarning.control.arm.scale_set_reading import primary_card, subnet_of

_TAIL = "networkinterfaces"


async def all_listed(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    return await _listed(call, found, found.machines)


async def listed(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    return await _listed(call, found, [one_called(found, call.path)])


async def _listed(call: ArmCall, found: Standing, machines: list[Machine]) -> Reply:
    profile = true_body(found)["properties"]["virtualMachineProfile"]
    # An instance without an address has no interface that anybody could use.
    rows = [interface_json(found, each, profile) for each in machines if each.instance.addresses]
    return await listing.listed(call, rows)


def interface_json(found: Standing, machine: Machine, profile: Json) -> Json:
    """One for each instance, with all its addresses."""
    vm = f"{found.id}/virtualMachines/{instance_id_of(machine)}"
    name = primary_card(profile).get("name") or "nic"
    id = f"{vm}/networkInterfaces/{name}"
    subnet = subnet_of(profile)
    addresses = [
        {
            "name": f"ipconfig{number}",
            "id": f"{id}/ipConfigurations/ipconfig{number}",
            "properties": {
                "provisioningState": "Succeeded",
                "privateIPAddress": address,
                "privateIPAllocationMethod": "Dynamic",
                "primary": number == 1,
                **({"subnet": {"id": subnet}} if subnet else {}),
            },
        }
        for number, address in enumerate(machine.instance.addresses, 1)
    ]
    properties = {
        "provisioningState": "Succeeded",
        "primary": True,
        "ipConfigurations": addresses,
        "virtualMachine": {"id": vm},
    }
    return {"name": name, "id": id, "properties": properties}


INTERFACE_ROUTES: Routes = {
    ("GET", TYPE.lower(), _TAIL): all_listed,
    ("GET", INSTANCE_TYPE.lower(), _TAIL): listed,
}
