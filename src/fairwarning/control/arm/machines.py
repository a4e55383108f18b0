"""Virtual machines: made, changed, shown, listed and deleted."""

import asyncio
import re

from msgspec.structs import replace

from fairwarning.control.arm.bodies import object_at
from fairwarning.control.arm.call import Arm, ArmCall, Reply, Routes
from fairwarning.control.arm.errors import ArmError, not_found
from fairwarning.control.arm.fleet import Machine, machines_in
from fairwarning.control.arm.instance_views import events_of, view_json
from fairwarning.control.arm.inventory import scopes_in
from fairwarning.control.arm.kept_machines import (
    TYPE,
    Standing,
    machine_id,
    of_machine,
    standing,
)
from fairwarning.control.arm.listing import SLICE, listed
from fairwarning.control.arm.locks import locked
from fairwarning.control.arm.machine_actions import ACTIONS
from fairwarning.control.arm.machine_answers import existing, shown
from fairwarning.control.arm.machine_changing import change
from fairwarning.control.arm.machine_json import declared_body, membership_json
from fairwarning.control.arm.machine_making import make, new_kept
from fairwarning.control.arm.operations import Operation, accepted
from fairwarning.control.arm.paths import same_id
from fairwarning.control.arm.profiles import refuse_too_new
from fairwarning.control.scale_sets import operate_all
from fairwarning.core.deleting import takes_away
from fairwarning.core.model import OperationKind
from fairwarning.engine.protocols import RecordChanged

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
    found = await standing(arm, call.path)
    if found is None:
        return Reply(204)
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
    return accepted(call, operation, machine.scope.roster.location)


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
            found = await standing(arm, call.path)
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
ROUTES: Routes = {
    ("PUT", _VM, ""): put,
    ("PATCH", _VM, ""): put,
    ("GET", _VM, ""): show,
    ("GET", _VM, "instanceview"): show_view,
    ("DELETE", _VM, ""): delete,
    ("GET", "microsoft.compute", "virtualmachines"): list_all,
    **{("POST", _VM, verb): action for verb, action in ACTIONS.items()},
}
