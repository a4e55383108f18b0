"""Virtual machines: made, changed, shown, listed and deleted."""

import asyncio
import re
from collections.abc import Mapping

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.fleet_view import Machine, machines_in
from fairwarning.azure_api.instance_changes import locked
from fairwarning.azure_api.instance_views import events_of, pending_maintenance, view_json
from fairwarning.azure_api.inventory import scopes_in
from fairwarning.azure_api.lists import SLICE, listed
from fairwarning.azure_api.notice_profiles import refuse_too_new
from fairwarning.azure_api.operations import Deletion, Operation, accepted
from fairwarning.azure_api.paths import ResourcePath, same_id
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Reply, Routes
from fairwarning.azure_api.virtual_machines.render import (
    declared_body,
    existing,
    membership_json,
    refuse_going,
    shown,
)
from fairwarning.azure_api.virtual_machines.state import (
    TYPE,
    Standing,
    machine_id,
    of_machine,
    standing,
    standing_at,
)
from fairwarning.azure_api.virtual_machines.update import change, make, new_kept
from fairwarning.core.deleting import takes_away
from fairwarning.core.model import EventId, OperationKind, Priority
from fairwarning.engine.protocols import RecordChanged
from fairwarning.operator_api.scale_sets import operate_all

_FILTER = re.compile(r"\s*'virtualMachineScaleSet/id'\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


async def put(arm: Arm, call: ArmCall) -> Reply:
    refuse_too_new(call, object_at(call.body or {}, "properties"))
    while True:
        found = await standing(arm, call.path)
        if found is None and call.method == "PATCH":
            raise not_found(TYPE, call.path.name, call.path.group)
        try:
            if found is None:
                return await _make(arm, call)
            return await change(arm, call, found)
        except RecordChanged:
            continue  # Somebody else was faster: merge with what he said.


async def _make(arm: Arm, call: ArmCall) -> Reply:
    """One at a time: the fleet would take a name in two spellings for two machines."""
    async with locked(arm, call, f"arm{call.path.id.lower()}") as own:
        found = await standing(own, call.path)
        return await make(own, call) if found is None else await change(own, call, found)


async def show(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    with_view = "instanceview" in call.query.get("$expand", "").lower()
    return Reply(200, shown(arm, call, found, with_view=with_view))


async def show_view(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    return Reply(200, view_json(found.machine, arm.control.clock.now()))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    deletion = await begin_delete(arm, call, call.path)
    return Reply(204) if deletion is None else accepted(call, *deletion)


async def begin_delete(arm: Arm, call: ArmCall, path: ResourcePath) -> Deletion | None:
    """None if there is no such VM. Asking again joins the deletion that is under way."""
    found = await standing(arm, path)
    if found is None:
        return None
    machine = found.machine
    events = tuple(each.id for each in events_of(machine) if takes_away(each))
    if not events:
        target = (machine.scope.id, machine.instance.name)
        kind = OperationKind.DELETE
        events = await operate_all(arm.control, [target], kind, by=call.by, why=call.why)
    operation = await arm.operations.begin(
        call, verb="delete", target=machine_id(machine), events=events
    )
    await _mark_going(arm, call, found, operation)
    return Deletion(operation, machine.scope.roster.location)


async def _mark_going(
    arm: Arm, call: ArmCall, found: Standing | None, operation: Operation
) -> None:
    while found is not None:
        machine = found.machine
        kept = found.kept or new_kept(
            arm, machine_id(machine), machine.instance.name, declared_body(machine), ""
        )
        try:
            await arm.shelf.put(replace(kept, is_going=True, operation=operation.id), by=call.by)
        except RecordChanged:
            found = await standing_at(arm, machine_id(machine))
        else:
            return


async def list_all(arm: Arm, call: ArmCall) -> Reply:
    wanted_set = _wanted_set(call)
    start = call.path.id if call.path.group else call.path.place
    kept = {
        each.id.lower(): each
        async for each in arm.shelf.below(start)
        if each.type.lower() == TYPE.lower()
    }
    found = []
    async for scope in scopes_in(arm, call.path.subscription, call.path.group):
        for machine in machines_in(scope):
            if wanted_set is None or _is_in(machine, wanted_set):
                stands = await of_machine(arm, machine, kept.get(machine_id(machine).lower()))
                found.append(shown(arm, call, stands))
            if len(found) % SLICE == 0:
                await asyncio.sleep(0)
    return await listed(call, found)


def _wanted_set(call: ArmCall) -> str | None:
    text = call.query.get("$filter")
    if text is None:
        return None
    found = _FILTER.fullmatch(text)
    if found is None:
        raise ArmError(
            400,
            "InvalidParameter",
            f"The filter '{text[:100]}' is not supported; use 'virtualMachineScaleSet/id' eq "
            "'<id of a scale set>', quotes included.",
            target="$filter",
        )
    return found[1]


def _is_in(machine: Machine, set_id: str) -> bool:
    membership = membership_json(machine).get("virtualMachineScaleSet", {})
    return same_id(membership.get("id", ""), set_id)


_VM = TYPE.lower()
# What an owner asks of a VM: each is an operation that lasts as long as its event.
_KINDS = {
    "restart": OperationKind.RESTART,
    "redeploy": OperationKind.REDEPLOY,
    "reimage": OperationKind.REIMAGE,
    "start": OperationKind.START,
    "poweroff": OperationKind.STOP,
    "deallocate": OperationKind.DEALLOCATE,
}


async def operate(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    refuse_going(call, found)
    events = await _operated(arm, call, found, _KINDS[call.path.tail])
    return await _accepted(arm, call, found, events)


async def reapply(arm: Arm, call: ArmCall) -> Reply:
    """The state of a VM is what its owner said already: there is nothing to do."""
    found = await existing(arm, call.path)
    refuse_going(call, found)
    return await _accepted(arm, call, found, ())


async def simulate_eviction(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    refuse_going(call, found)
    if found.machine.instance.priority is not Priority.SPOT:
        raise ArmError(
            409,
            "OperationNotAllowed",
            "Operation 'simulateEviction' is allowed only for Spot Virtual Machines.",
        )
    await _operated(arm, call, found, OperationKind.EVICT)
    return Reply(204)


async def perform_maintenance(arm: Arm, call: ArmCall) -> Reply:
    """The owner has the platform's maintenance now, instead of when it is due."""
    found = await existing(arm, call.path)
    refuse_going(call, found)
    pending = pending_maintenance(found.machine)[:1]
    if not pending:
        raise ArmError(
            409,
            "OperationNotAllowed",
            f"Operation 'performMaintenance' is not allowed on VM '{found.machine.instance.name}' "
            "since no maintenance is pending for it.",
        )
    await arm.control.engine.approve(pending[0].id, by=call.by, why=call.why)
    return await _accepted(arm, call, found, (pending[0].id,))


async def _operated(
    arm: Arm, call: ArmCall, found: Standing, kind: OperationKind
) -> tuple[EventId, ...]:
    machine = found.machine
    target = (machine.scope.id, machine.instance.name)
    return await operate_all(arm.control, [target], kind, by=call.by, why=call.why)


async def _accepted(arm: Arm, call: ArmCall, found: Standing, events: tuple[EventId, ...]) -> Reply:
    operation = await arm.operations.begin(
        call, verb=call.path.tail, target=machine_id(found.machine), events=events
    )
    return accepted(call, operation, found.machine.scope.roster.location)


ACTIONS: Mapping[str, Handler] = {
    **dict.fromkeys(_KINDS, operate),
    "reapply": reapply,
    "simulateeviction": simulate_eviction,
    "performmaintenance": perform_maintenance,
}
ROUTES: Routes = {
    ("PUT", _VM, ""): put,
    ("PATCH", _VM, ""): put,
    ("GET", _VM, ""): show,
    ("GET", _VM, "instanceview"): show_view,
    ("DELETE", _VM, ""): delete,
    ("GET", "microsoft.compute", "virtualmachines"): list_all,
    **{("POST", _VM, verb): action for verb, action in ACTIONS.items()},
}
