"""Finds VMs. It reads their instances in the fleet and their stored records.

No background task deletes the record of a deleted VM. The next lookup of the VM does. A new VM with
the name of a deleted one inherits nothing from it.
"""

from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import not_allowed, not_found
from fairwarning.azure_api.fleet_view import FleetInstance, find_vm
from fairwarning.azure_api.operations import OperationState
from fairwarning.azure_api.paths import BadPath, ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import RecordChanged

TYPE = "Microsoft.Compute/virtualMachines"


class VirtualMachineState(NamedTuple):
    vm: FleetInstance
    record: ResourceRecord | None
    state: OperationState
    """The state of the last operation on the VM."""

    @property
    def is_deleting(self) -> bool:
        return self.record is not None and self.record.is_deleting


def vm_resource_id(vm: FleetInstance) -> str:
    roster = vm.scope.roster
    return resource_id(roster.subscription, roster.resource_group, TYPE, vm.instance.name)


async def find_virtual_machine(arm: Arm, path: ResourcePath) -> VirtualMachineState | None:
    """Returns the VM. If there is no such VM, returns None and deletes its old record."""
    vm = await find_vm(arm, path.subscription, path.group, path.name)
    record = await arm.resources.find(path.id)
    if vm is None:
        await _delete_record(arm, record)
        return None
    return await state_of_vm(arm, vm, record)


async def state_of_vm(
    arm: Arm, vm: FleetInstance, record: ResourceRecord | None
) -> VirtualMachineState:
    """Returns the state of a VM whose instance and record were already read."""
    state = await arm.operations.state_of_id(record.operation if record else "")
    if record is not None and record.is_deleting and state.is_over:
        if state.status == "Succeeded":
            await _delete_record(arm, record)
            return VirtualMachineState(vm, None, state)
        record = replace(record, is_deleting=False)
    return VirtualMachineState(vm, record, state)


async def find_virtual_machine_by_id(arm: Arm, id: str) -> VirtualMachineState | None:
    """Returns the VM with this id. It is None if the id is not valid or there is no such VM."""
    try:
        path = resource_path(id)
    except BadPath:
        return None
    return await find_virtual_machine(arm, path) if path.key == TYPE.lower() else None


async def _delete_record(arm: Arm, record: ResourceRecord | None) -> None:
    if record is None:
        return
    try:
        await arm.resources.delete(record, by=ENGINE)
    except RecordChanged:
        return  # Somebody has just created a VM of the same name.


async def get_virtual_machine(arm: Arm, path: ResourcePath) -> VirtualMachineState:
    """Returns the VM. Raises ArmError if there is no such VM."""
    found = await find_virtual_machine(arm, path)
    if found is None:
        raise not_found(TYPE, path.name, path.group)
    return found


def refuse_deleting(call: ArmCall, found: VirtualMachineState) -> None:
    if found.is_deleting:
        raise not_allowed(
            f"Operation '{call.path.tail or call.method}' is not allowed on VM "
            f"'{found.vm.instance.name}' since the VM is marked for deletion. You can only "
            "retry the Delete operation (or wait for an ongoing one to complete)."
        )
