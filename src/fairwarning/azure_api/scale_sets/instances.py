"""These handlers get, list and delete instances of scale sets, and start operations on them."""

import re
from collections.abc import Callable

from fairwarning.azure_api import lists
from fairwarning.azure_api.body_values import object_at
from fairwarning.azure_api.errors import ArmError, not_allowed
from fairwarning.azure_api.etags import Watch, checked_change, content_tag, refuse_unmatched
from fairwarning.azure_api.fleet_view import FleetInstance
from fairwarning.azure_api.instance_views import status_codes, view_json
from fairwarning.azure_api.networks.render import PROPERTIES, mac_address
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.scale_sets import protection
from fairwarning.azure_api.scale_sets.actions import (
    ALL,
    KINDS,
    accepted_reply,
    approve_maintenance,
    start_operations,
)
from fairwarning.azure_api.scale_sets.body import primary_card, subnet_of
from fairwarning.azure_api.scale_sets.render import (
    current_body,
    find_instance,
    get_instance,
    instance_json,
    instance_tag,
    interface_id,
)
from fairwarning.azure_api.scale_sets.state import INSTANCE_TYPE, TYPE, ScaleSetState, get_scale_set
from fairwarning.core.identifiers import guid_of
from fairwarning.core.model import OperationKind, Priority

_KEY = INSTANCE_TYPE.lower()
Condition = Callable[[FleetInstance], bool]
_MODEL = re.compile(r"properties/latestModelApplied\s+eq\s+(true|false)", re.IGNORECASE)
_STATUS = re.compile(
    r"startswith\(\s*(?:properties/)?instanceView/statuses/code\s*,\s*'([^']*)'\s*\)"
    r"(?:\s+eq\s+(true|false))?",
    re.IGNORECASE,
)


async def list_instances(arm: Arm, call: ArmCall) -> Reply:
    lists.read_expand(call, "instanceView")
    found = await get_scale_set(arm, call.path)
    instances = found.instances
    if call.query.get("$filter"):
        holds = read_condition(call.query["$filter"])
        instances = [each for each in instances if holds(each)]
    body = current_body(found)
    rows = [_instance_json(arm, call, found, each, body) for each in instances]
    return await lists.list_reply(call, rows)


async def get(arm: Arm, call: ArmCall) -> Reply:
    lists.read_expand(call, "instanceView", "userData")
    found = await get_scale_set(arm, call.path)
    vm = get_instance(found, call.path)
    return Reply(200, _instance_json(arm, call, found, vm, current_body(found)))


async def get_instance_view(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    vm = get_instance(found, call.path)
    return Reply(200, view_json(vm, arm.control.clock.now()))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    async def end(own: Arm, watch: Watch) -> Reply:
        found = await get_scale_set(own, call.path)
        vm = find_instance(found, call.path.name)
        refuse_unmatched(call, None if vm is None else instance_tag(found, vm))
        if vm is None:
            return Reply(204)
        watch([vm.scope])
        events = await start_operations(own, call, [vm], OperationKind.DELETE)
        return await accepted_reply(own, call, found, "delete", events)

    return await checked_change(arm, call, end)


async def simulate_eviction(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    vm = get_instance(found, call.path)
    if vm.instance.priority is not Priority.SPOT:
        raise not_allowed("Operation 'simulateEviction' is allowed only for Spot Virtual Machines")
    await start_operations(arm, call, [vm], OperationKind.EVICT)
    return Reply(204)


async def perform_maintenance(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    events = await approve_maintenance(arm, call, _named_instances(found, call))
    return await accepted_reply(arm, call, found, "performMaintenance", events)


def _operation(verb: str, kind: OperationKind) -> Handler:
    async def handle(arm: Arm, call: ArmCall) -> Reply:
        found = await get_scale_set(arm, call.path)
        events = await start_operations(arm, call, _named_instances(found, call), kind)
        return await accepted_reply(arm, call, found, verb, events)

    return handle


def _instance_json(
    arm: Arm, call: ArmCall, found: ScaleSetState, vm: FleetInstance, body: Json
) -> Json:
    view = None
    if call.query.get("$expand", "").lower() == "instanceview":
        view = view_json(vm, arm.control.clock.now())
    return instance_json(found, vm, body, view)


def _named_instances(found: ScaleSetState, call: ArmCall) -> list[FleetInstance]:
    """Returns the instances that the path names. The name `*` means all instances that
    are not protected from actions on the whole set.

    Raises ArmError if there is no instance with this name.
    """
    return found.open_to_actions if call.path.name == ALL else [get_instance(found, call.path)]


async def list_interfaces_of_set(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    return await _list_interfaces(call, found, found.instances)


async def list_interfaces_of_instance(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    return await _list_interfaces(call, found, [get_instance(found, call.path)])


async def _list_interfaces(
    call: ArmCall, found: ScaleSetState, instances: list[FleetInstance]
) -> Reply:
    profile = current_body(found)["properties"]["virtualMachineProfile"]
    # An instance without an address has no usable interface.
    rows = [interface_json(found, each, profile) for each in instances if each.instance.addresses]
    return await lists.list_reply(call, rows)


def interface_json(found: ScaleSetState, vm: FleetInstance, profile: Json) -> Json:
    """Renders the only network interface of an instance, with all addresses of the instance."""
    id = interface_id(found, vm, profile)
    card = object_at(primary_card(profile), "properties")
    subnet = subnet_of(profile)
    addresses = [
        {
            "name": f"ipconfig{number}",
            "id": f"{id}/ipConfigurations/ipconfig{number}",
            "properties": {
                "provisioningState": "Succeeded",
                "privateIPAddress": address,
                "privateIPAllocationMethod": "Dynamic",
                "privateIPAddressVersion": "IPv6" if ":" in address else "IPv4",
                "primary": number == 1,
                **({"subnet": {"id": subnet}} if subnet else {}),
            },
        }
        for number, address in enumerate(vm.instance.addresses, 1)
    ]
    shown = ("networkSecurityGroup", "enableAcceleratedNetworking", "enableIPForwarding")
    properties = {
        **PROPERTIES["networkinterfaces"],
        **{name: card[name] for name in shown if name in card},
        "provisioningState": "Succeeded",
        "resourceGuid": guid_of(id.lower()),
        "macAddress": mac_address(id),
        "primary": True,
        "ipConfigurations": addresses,
        "virtualMachine": {"id": id.partition("/networkInterfaces/")[0]},
    }
    row = {"name": id.rpartition("/")[2], "id": id, "properties": properties}
    return {**row, "etag": content_tag(row)}


def read_condition(text: str) -> Condition:
    """Reads a `$filter`. Its parts are joined by `and`, and all must be true.

    Raises ArmError if a part is not one of the conditions that Azure documents.
    """
    parts = [_one(each) for each in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE)]
    return lambda vm: all(holds(vm) for holds in parts)


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


def _has_status(vm: FleetInstance, start: str) -> bool:
    return any(code.lower().startswith(start) for code in status_codes(vm))


ROUTES: Routes = {
    ("GET", TYPE.lower(), "networkinterfaces"): list_interfaces_of_set,
    ("GET", _KEY, "networkinterfaces"): list_interfaces_of_instance,
    **{
        ("POST", _KEY, verb): _operation(verb, kind)
        for verb, kind in KINDS.items()
        if kind is not OperationKind.DELETE
    },
    ("GET", TYPE.lower(), "virtualmachines"): list_instances,
    ("GET", _KEY, ""): get,
    ("GET", _KEY, "instanceview"): get_instance_view,
    ("PUT", _KEY, ""): protection.update,
    ("DELETE", _KEY, ""): delete,
    ("POST", _KEY, "simulateeviction"): simulate_eviction,
    ("POST", _KEY, "performmaintenance"): perform_maintenance,
}
