"""Instances of scale sets, one by one."""

from fairwarning.control.arm import listing
from fairwarning.control.arm.call import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.instance_filters import condition_of
from fairwarning.control.arm.instance_views import view_json
from fairwarning.control.arm.kept_scale_sets import INSTANCE_TYPE, TYPE, Standing, needed
from fairwarning.control.arm.scale_set_actions import (
    ALL,
    KINDS,
    begun,
    operate,
    perform_maintenance,
)
from fairwarning.control.arm.scale_set_instance_json import (
    called,
    instance_json,
    one_called,
)
from fairwarning.control.arm.scale_set_interfaces import INTERFACE_ROUTES
from fairwarning.control.arm.scale_set_json import true_body
from fairwarning.core.model import OperationKind, Priority

_KEY = INSTANCE_TYPE.lower()


async def all_shown(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machines = found.machines
    if call.query.get("$filter"):
        holds = condition_of(call.query["$filter"])
        machines = [each for each in machines if holds(each)]
    body = true_body(found)
    rows = [_instance_json(arm, call, found, each, body) for each in machines]
    return await listing.listed(call, rows)


async def shown(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machine = one_called(found, call.path)
    return Reply(200, _instance_json(arm, call, found, machine, true_body(found)))


async def view_shown(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machine = one_called(found, call.path)
    return Reply(200, view_json(machine, arm.control.clock.now()))


async def deleted(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machine = called(found, call.path.name)
    if machine is None:
        return Reply(204)
    events = await operate(arm, call, [machine], OperationKind.DELETE)
    return await begun(arm, call, found, "delete", events)


async def evicted(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machine = one_called(found, call.path)
    if machine.instance.priority is not Priority.SPOT:
        raise ArmError(
            409,
            "OperationNotAllowed",
            "Operation 'simulateEviction' is allowed only for Spot Virtual Machines",
        )
    await operate(arm, call, [machine], OperationKind.EVICT)
    return Reply(204)


async def maintained(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    events = await perform_maintenance(arm, call, _some(found, call))
    return await begun(arm, call, found, "performMaintenance", events)


def _operation(verb: str, kind: OperationKind) -> Handler:
    async def handle(arm: Arm, call: ArmCall) -> Reply:
        found = await needed(arm, call.path)
        events = await operate(arm, call, _some(found, call), kind)
        return await begun(arm, call, found, verb, events)

    return handle


def _instance_json(arm: Arm, call: ArmCall, found: Standing, machine: Machine, body: Json) -> Json:
    view = None
    if call.query.get("$expand", "").lower() == "instanceview":
        view = view_json(machine, arm.control.clock.now())
    return instance_json(found, machine, body, view)


def _some(found: Standing, call: ArmCall) -> list[Machine]:
    """As the path names them; `*` may be nobody. Raises ArmError."""
    return found.members if call.path.name == ALL else [one_called(found, call.path)]


ROUTES: Routes = {
    **INTERFACE_ROUTES,
    **{
        ("POST", _KEY, verb): _operation(verb, kind)
        for verb, kind in KINDS.items()
        if kind is not OperationKind.DELETE
    },
    ("GET", TYPE.lower(), "virtualmachines"): all_shown,
    ("GET", _KEY, ""): shown,
    ("GET", _KEY, "instanceview"): view_shown,
    ("DELETE", _KEY, ""): deleted,
    ("POST", _KEY, "simulateeviction"): evicted,
    ("POST", _KEY, "performmaintenance"): maintained,
}
