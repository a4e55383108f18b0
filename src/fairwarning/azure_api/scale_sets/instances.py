"""Instances of scale sets, one by one."""

import re
from collections.abc import Callable

from fairwarning.azure_api import lists
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.instance_views import status_codes, view_json
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.scale_sets.actions import (
    ALL,
    KINDS,
    begun,
    operate,
    perform_maintenance,
)
from fairwarning.azure_api.scale_sets.body import primary_card, subnet_of
from fairwarning.azure_api.scale_sets.render import (
    called,
    instance_id_of,
    instance_json,
    one_called,
    true_body,
)
from fairwarning.azure_api.scale_sets.state import INSTANCE_TYPE, TYPE, Standing, needed
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
    return await lists.listed(call, rows)


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


# The interfaces of a scale set's instances, where their owner reads their addresses.
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
    return await lists.listed(call, rows)


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
# `$filter` on the instances of a scale set: the conditions that Azure documents. Pure.
Condition = Callable[[Machine], bool]
_MODEL = re.compile(r"properties/latestModelApplied\s+eq\s+(true|false)", re.IGNORECASE)
_STATUS = re.compile(
    r"startswith\(\s*(?:properties/)?instanceView/statuses/code\s*,\s*'([^']*)'\s*\)"
    r"(?:\s+eq\s+(true|false))?",
    re.IGNORECASE,
)


def condition_of(text: str) -> Condition:
    """Parts joined by `and` must all hold. Raises ArmError."""
    parts = [_one(each) for each in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE)]
    return lambda machine: all(holds(machine) for holds in parts)


def _one(text: str) -> Condition:
    model = _MODEL.fullmatch(text)
    if model is not None:
        wanted = model[1].lower() == "true"
        return lambda each: each.scope.roster.latest_model_applied(each.instance) is wanted
    status = _STATUS.fullmatch(text)
    if status is not None:
        start, wanted = status[1].lower(), (status[2] or "true").lower() == "true"
        return lambda each: _has_status(each, start) is wanted
    raise ArmError(
        400,
        "InvalidFilterInQueryString",
        f"The $filter '{text[:100]}' is not supported; use properties/latestModelApplied eq true, "
        "or startswith(instanceView/statuses/code, 'PowerState/running') eq true.",
    )


def _has_status(machine: Machine, start: str) -> bool:
    return any(code.lower().startswith(start) for code in status_codes(machine))


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
