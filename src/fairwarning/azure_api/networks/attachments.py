"""Tells which VM uses which interface, and computes the VM's addresses from that.

A VM's body names its interfaces, and an interface's body names its VM. The interface is attached
only if both agree. Therefore the interfaces of a deleted VM need no cleanup.

Declared addresses of a VM come first, then those of its interfaces. Declared addresses stay even if
a client changes the interfaces, because the metadata endpoint identifies instances by them.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.networks.subnets import missing_reference
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.virtual_machines.state import (
    VirtualMachineState,
    find_virtual_machine_by_id,
)
from fairwarning.core.model import Actor
from fairwarning.engine.protocols import RecordChanged

INTERFACES = "microsoft.network/networkinterfaces"


def references(vm_body: Json) -> list[Json]:
    """Returns the references to interfaces in the body of a VM."""
    return objects_at(vm_body, "properties", "networkProfile", "networkInterfaces")


def addresses_of(interface: Json) -> list[str]:
    """Returns the private addresses of an interface. The primary address is the first."""
    configurations = objects_at(interface, "properties", "ipConfigurations")
    ordered = sorted(configurations, key=lambda each: not _is_primary(each))
    found = (text_at(each, "properties", "privateIPAddress") for each in ordered)
    return [address for address in found if address]


def _is_primary(configuration: Json) -> bool:
    return object_at(configuration, "properties").get("primary") is True


async def vm_using(arm: Arm, interface: ResourceRecord) -> VirtualMachineState | None:
    """Returns the VM that the interface is attached to. It is None if there is no such VM."""
    id = text_at(interface.body, "properties", "virtualMachine", "id")
    found = await find_virtual_machine_by_id(arm, id) if id else None
    if found is None or found.record is None:
        return None
    is_mutual = any(same_id(text_at(r, "id"), interface.id) for r in references(found.record.body))
    return found if is_mutual else None


async def attachable_interfaces(arm: Arm, vm_id: str, vm_body: Json) -> list[ResourceRecord]:
    """Returns the interfaces that the body of the VM names.

    Raises ArmError if an interface does not exist or is attached to another VM.
    """
    found: list[ResourceRecord] = []
    for reference in references(vm_body):
        id = text_at(reference, "id")
        record = await arm.resources.find(id) if id else None
        if record is None or record.type.lower() != INTERFACES:
            raise missing_reference(id or "(without id)")
        vm = await vm_using(arm, record)
        if vm is not None and vm.record is not None and not same_id(vm.record.id, vm_id):
            raise ArmError(
                409,
                "NicInUse",
                f"Network Interface {record.id} is used by existing resource {vm.record.id}. "
                "Use another, or delete that resource first.",
            )
        found.append(record)
    return found


async def attach(arm: Arm, interfaces: Sequence[ResourceRecord], vm_id: str, *, by: Actor) -> None:
    for each in interfaces:
        await _attach_one(arm, each, vm_id, by)


async def _attach_one(arm: Arm, interface: ResourceRecord, vm_id: str, by: Actor) -> None:
    known: ResourceRecord | None = interface
    while known is not None:
        properties = object_at(known.body, "properties")
        if same_id(text_at(properties, "virtualMachine", "id"), vm_id):
            return
        properties = {**properties, "virtualMachine": {"id": vm_id}}
        try:
            await arm.resources.put(
                replace(known, body={**known.body, "properties": properties}), by=by
            )
        except RecordChanged:
            known = await arm.resources.find(interface.id)
        else:
            return


def addresses_of_all(interfaces: Iterable[ResourceRecord]) -> tuple[str, ...]:
    return tuple(address for each in interfaces for address in addresses_of(each.body))


def replace_addresses(
    addresses: Iterable[str], had: Collection[str], has: Sequence[str]
) -> tuple[str, ...]:
    """Returns the new addresses of an instance, whose present ones are `addresses`.

    `had` are the old addresses of its interfaces, and `has` are the new ones.
    """
    declared = (each for each in addresses if each not in had and each not in has)
    return (*declared, *has)


async def interfaces_of(arm: Arm, vm: Json) -> list[ResourceRecord]:
    """Returns the interfaces that the body of a VM names, as far as they exist."""
    ids = [text_at(each, "id") for each in references(vm)]
    return [found for id in ids if id and (found := await arm.resources.find(id)) is not None]


async def update_addresses(
    arm: Arm, call: ArmCall, user: VirtualMachineState | None, freed: Collection[str]
) -> None:
    """Updates the addresses of the VM `user` after its interfaces changed.

    `freed` are the addresses that the interfaces no longer have. Does nothing if `user` is None.
    """
    if user is None or user.record is None:
        return
    has = addresses_of_all(await interfaces_of(arm, user.record.body))
    await change_instance(
        arm,
        call,
        user.vm.scope.id,
        user.vm.instance.name,
        lambda instance: replace(
            instance, addresses=replace_addresses(instance.addresses, freed, has)
        ),
    )
