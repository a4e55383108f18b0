"""These handlers create, get, list, update and delete VMs, and start operations on them."""

import asyncio
import re
from collections.abc import Mapping

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at
from fairwarning.azure_api.errors import invalid_parameter, not_allowed, not_found
from fairwarning.azure_api.etags import Watch, checked_change, refuse_unmatched
from fairwarning.azure_api.fleet_view import FleetInstance, scopes_in, vms_in
from fairwarning.azure_api.instance_changes import locked_in_turn
from fairwarning.azure_api.instance_views import events_of, pending_maintenance, view_json
from fairwarning.azure_api.lists import SLICE, list_reply, read_expand
from fairwarning.azure_api.notice_profiles import refuse_newer_members
from fairwarning.azure_api.operations import Deletion, accepted
from fairwarning.azure_api.paths import ResourcePath, same_id
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Reply, Routes
from fairwarning.azure_api.virtual_machines.render import membership_json, render_vm
from fairwarning.azure_api.virtual_machines.state import (
    TYPE,
    VirtualMachineState,
    find_virtual_machine,
    get_virtual_machine,
    refuse_deleting,
    state_of_vm,
    vm_resource_id,
)
from fairwarning.azure_api.virtual_machines.update import create, first_record, update
from fairwarning.core.model import EventId, OperationKind, Priority
from fairwarning.core.pending_deletions import takes_away
from fairwarning.operator_api.scale_sets import operate_all

_VM = TYPE.lower()
_OPERATIONS = {
    "restart": OperationKind.RESTART,
    "redeploy": OperationKind.REDEPLOY,
    "reimage": OperationKind.REIMAGE,
    "start": OperationKind.START,
    "poweroff": OperationKind.STOP,
    "deallocate": OperationKind.DEALLOCATE,
}
_FILTER = re.compile(r"\s*'virtualMachineScaleSet/id'\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    """Creates or updates a VM. A PATCH only updates, and raises ArmError if there is no such VM.

    It holds a lock: others must not change the VM after its tag was compared, and the fleet would
    accept two VMs whose names differ only in case.
    """
    refuse_newer_members(call, object_at(call.body or {}, "properties"))

    async def write(own: Arm, watch: Watch) -> Reply:
        found = await _find_matching(own, call, call.path, watch)
        if found is not None:
            return await update(own, call, found)
        if call.method == "PATCH":
            raise not_found(TYPE, call.path.name, call.path.group)
        return await create(own, call)

    async with locked_in_turn(arm, call, _lock(call.path)) as own:
        return await checked_change(own, call, write)


def _lock(path: ResourcePath) -> str:
    return f"arm{path.id.lower()}"


async def _find_matching(
    arm: Arm, call: ArmCall, path: ResourcePath, watch: Watch
) -> VirtualMachineState | None:
    """Returns the VM, or None. Raises ArmError if a condition of the call does not hold."""
    found = await find_virtual_machine(arm, path)
    refuse_unmatched(call, None if found is None else render_vm(arm, call, found)["etag"])
    watch([] if found is None else [found.vm.scope])
    return found


async def get(arm: Arm, call: ArmCall) -> Reply:
    with_view = "instanceview" in read_expand(call, "instanceView", "userData")
    found = await get_virtual_machine(arm, call.path)
    return Reply(200, render_vm(arm, call, found, with_view=with_view))


async def get_instance_view(arm: Arm, call: ArmCall) -> Reply:
    found = await get_virtual_machine(arm, call.path)
    return Reply(200, view_json(found.vm, arm.control.clock.now()))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    deletion = await begin_delete(arm, call, call.path)
    return Reply(204) if deletion is None else accepted(call, *deletion)


async def begin_delete(arm: Arm, call: ArmCall, path: ResourcePath) -> Deletion | None:
    """Starts to delete a VM. Returns None if there is no such VM.

    If the VM is already being deleted, the new operation waits for the same events.
    """

    async def end(own: Arm, watch: Watch) -> Deletion | None:
        found = await _find_matching(own, call, path, watch)
        return None if found is None else await _begin_delete(own, call, found)

    async with locked_in_turn(arm, call, _lock(path)) as own:
        return await checked_change(own, call, end)


async def _begin_delete(arm: Arm, call: ArmCall, found: VirtualMachineState) -> Deletion:
    vm = found.vm
    events = tuple(each.id for each in events_of(vm) if takes_away(each))
    if not events:
        target = (vm.scope.id, vm.instance.name)
        kind = OperationKind.DELETE
        events = await operate_all(arm.control, [target], kind, by=call.by, why=call.why)
    operation = await arm.operations.begin(
        call, verb="delete", target=vm_resource_id(vm), events=events
    )
    record = found.record or first_record(arm, vm)
    await arm.resources.put(replace(record, is_deleting=True, operation=operation.id), by=call.by)
    return Deletion(operation, vm.scope.roster.location)


async def list_virtual_machines(arm: Arm, call: ArmCall) -> Reply:
    wanted_set = _wanted_set(call)
    with_view = "instanceview" in read_expand(call, "instanceView")
    start = call.path.id if call.path.group else call.path.place
    records = {
        each.id.lower(): each
        async for each in arm.resources.list_below(start)
        if each.type.lower() == TYPE.lower()
    }
    found = []
    async for scope in scopes_in(arm, call.path.subscription, call.path.group):
        for vm in vms_in(scope):
            if wanted_set is None or _is_in(vm, wanted_set):
                state = await state_of_vm(arm, vm, records.get(vm_resource_id(vm).lower()))
                found.append(render_vm(arm, call, state, with_view=with_view))
            if len(found) % SLICE == 0:
                await asyncio.sleep(0)
    return await list_reply(call, found)


def _wanted_set(call: ArmCall) -> str | None:
    text = call.query.get("$filter")
    if text is None:
        return None
    found = _FILTER.fullmatch(text)
    if found is None:
        raise invalid_parameter(
            "$filter",
            f"The filter '{text[:100]}' is not supported; use 'virtualMachineScaleSet/id' eq "
            "'<id of a scale set>', quotes included.",
        )
    return found[1]


def _is_in(vm: FleetInstance, set_id: str) -> bool:
    membership = membership_json(vm).get("virtualMachineScaleSet", {})
    return same_id(membership.get("id", ""), set_id)


async def run_operation(arm: Arm, call: ArmCall) -> Reply:
    found = await get_virtual_machine(arm, call.path)
    refuse_deleting(call, found)
    events = await _start_operation(arm, call, found, _OPERATIONS[call.path.tail])
    return await _accepted(arm, call, found, events)


async def reapply(arm: Arm, call: ArmCall) -> Reply:
    """Changes nothing, because a VM always has the state that its owner wrote."""
    found = await get_virtual_machine(arm, call.path)
    refuse_deleting(call, found)
    return await _accepted(arm, call, found, ())


async def simulate_eviction(arm: Arm, call: ArmCall) -> Reply:
    found = await get_virtual_machine(arm, call.path)
    refuse_deleting(call, found)
    if found.vm.instance.priority is not Priority.SPOT:
        raise not_allowed("Operation 'simulateEviction' is allowed only for Spot Virtual Machines.")
    await _start_operation(arm, call, found, OperationKind.EVICT)
    return Reply(204)


async def perform_maintenance(arm: Arm, call: ArmCall) -> Reply:
    """Approves the next maintenance of the platform, so that it starts now.

    Raises ArmError if no maintenance is pending.
    """
    found = await get_virtual_machine(arm, call.path)
    refuse_deleting(call, found)
    pending = pending_maintenance(found.vm)[:1]
    if not pending:
        raise not_allowed(
            f"Operation 'performMaintenance' is not allowed on VM '{found.vm.instance.name}' "
            "since no maintenance is pending for it."
        )
    await arm.control.engine.approve(pending[0].id, by=call.by, why=call.why)
    return await _accepted(arm, call, found, (pending[0].id,))


async def _start_operation(
    arm: Arm, call: ArmCall, found: VirtualMachineState, kind: OperationKind
) -> tuple[EventId, ...]:
    vm = found.vm
    target = (vm.scope.id, vm.instance.name)
    return await operate_all(arm.control, [target], kind, by=call.by, why=call.why)


async def _accepted(
    arm: Arm, call: ArmCall, found: VirtualMachineState, events: tuple[EventId, ...]
) -> Reply:
    operation = await arm.operations.begin(
        call, verb=call.path.tail, target=vm_resource_id(found.vm), events=events
    )
    return accepted(call, operation, found.vm.scope.roster.location)


ACTIONS: Mapping[str, Handler] = {
    **dict.fromkeys(_OPERATIONS, run_operation),
    "reapply": reapply,
    "simulateeviction": simulate_eviction,
    "performmaintenance": perform_maintenance,
}
ROUTES: Routes = {
    ("PUT", _VM, ""): create_or_update,
    ("PATCH", _VM, ""): create_or_update,
    ("GET", _VM, ""): get,
    ("GET", _VM, "instanceview"): get_instance_view,
    ("DELETE", _VM, ""): delete,
    ("GET", "microsoft.compute", "virtualmachines"): list_virtual_machines,
    **{("POST", _VM, verb): action for verb, action in ACTIONS.items()},
}
