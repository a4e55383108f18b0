"""Gives each IP configuration of a network interface its private address."""

import ipaddress
from collections.abc import Collection
from typing import NamedTuple

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.networks.addresses import (
    AddressTaken,
    allocate,
    release,
    reserve,
    usable_range,
)
from fairwarning.azure_api.networks.attachments import addresses_of, references, vm_using
from fairwarning.azure_api.networks.render import mac_address
from fairwarning.azure_api.networks.subnets import prefix_of, refuse_link_local, refuse_same_names
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.virtual_machines.state import VirtualMachineState
from fairwarning.core.model import Actor

CONFIGURATIONS_MAX = 256
"""The maximum number of IP configurations of an interface, as on Azure."""
_DERIVED = ("virtualMachine", "macAddress", "primary", "resourceGuid", "vnetEncryptionSupported")


class InterfaceUpdate(NamedTuple):
    body: Json
    claimed: tuple[str, ...]
    """The new addresses. The caller must release them if it does not store the body."""
    freed: tuple[str, ...]
    """The addresses that are no longer used.

    The caller must release them after storing the body.
    """


async def assign_addresses(
    arm: Arm, id: str, body: Json, before: Json, *, by: Actor
) -> InterfaceUpdate:
    """Returns the body with an address for each IP configuration. Raises ArmError.

    `before` is the stored body. Its configurations keep their addresses, unless the new body sets a
    static address.
    """
    had = addresses_of(before)
    claimed: list[str] = []
    configurations: list[Json] = []
    requested = objects_at(body, "properties", "ipConfigurations")
    _refuse_too_many(id, requested)
    refuse_same_names(f"network interface {id}", requested)
    try:
        for wanted in requested:
            known = _same_configuration(before, wanted)
            address = await _address(arm, id, wanted, known, had, by)
            _refuse_twice(address, configurations)
            if address not in had:
                claimed.append(address)
            configurations.append(_with_address(wanted, address, is_first=not configurations))
    except Exception:
        await release_addresses(arm, claimed, id, by=by)
        raise
    properties = {k: v for k, v in object_at(body, "properties").items() if k not in _DERIVED}
    attached_vm = object_at(before, "properties", "virtualMachine")
    if attached_vm:
        properties["virtualMachine"] = attached_vm
    body = {**body, "properties": {**properties, "ipConfigurations": configurations}}
    now = set(addresses_of(body))
    return InterfaceUpdate(body, tuple(claimed), tuple(each for each in had if each not in now))


def _refuse_too_many(id: str, configurations: list[Json]) -> None:
    if len(configurations) > CONFIGURATIONS_MAX:
        raise ArmError(
            400,
            "IpConfigurationLimitExceeded",
            f"Network interface {id} has {len(configurations)} IP configurations; use at most "
            f"{CONFIGURATIONS_MAX}.",
        )


def _refuse_twice(address: str, configurations: list[Json]) -> None:
    """Raises ArmError if another configuration of the same interface has the address."""
    if any(text_at(each, "properties", "privateIPAddress") == address for each in configurations):
        raise _in_use(address)


async def release_addresses(arm: Arm, addresses: Collection[str], id: str, *, by: Actor) -> None:
    """Releases the addresses, except those that the stored interface with this id has."""
    record = await arm.resources.find(id)
    # Another request may have stored the same interface with the same address meanwhile.
    has = [] if record is None else addresses_of(record.body)
    for each in addresses:
        if each not in has:
            await release(arm, each, id, by=by)


def _same_configuration(before: Json, wanted: Json) -> Json:
    for each in objects_at(before, "properties", "ipConfigurations"):
        subnets = (text_at(c, "properties", "subnet", "id") for c in (each, wanted))
        if text_at(each, "name").lower() == text_at(wanted, "name").lower() and same_id(*subnets):
            return each
    return {}


async def _address(
    arm: Arm, id: str, wanted: Json, known: Json, had: Collection[str], by: Actor
) -> str:
    subnet = text_at(wanted, "properties", "subnet", "id")
    if not subnet:
        raise ArmError(
            400,
            "InvalidRequestFormat",
            f"IP configuration '{text_at(wanted, 'name')}' of {id} has no subnet.id; name the "
            "subnet that the address is to come from.",
        )
    version = 6 if text_at(wanted, "properties", "privateIPAddressVersion") == "IPv6" else 4
    requested = text_at(wanted, "properties", "privateIPAddress")
    if is_static(wanted) and requested:
        return await _reserve_requested(arm, id, requested, subnet, had, by)
    if address := text_at(known, "properties", "privateIPAddress"):
        return address
    return (await allocate(arm, subnet, 1, by=by, owner=id, version=version))[0]


def is_static(configuration: Json) -> bool:
    return text_at(configuration, "properties", "privateIPAllocationMethod").lower() == "static"


async def _reserve_requested(
    arm: Arm, id: str, requested: str, subnet: str, had: Collection[str], by: Actor
) -> str:
    try:
        address = ipaddress.ip_address(requested)
    except ValueError:
        raise ArmError(
            400, "InvalidPrivateIPAddress", f"'{requested[:60]}' is no IP address; write 10.0.0.4."
        ) from None
    refuse_link_local(address, "InvalidPrivateIPAddress")
    prefix = await prefix_of(arm, subnet, address.version)
    first, last = usable_range(prefix)
    if not first <= int(address) <= last:
        raise ArmError(
            400,
            "PrivateIPAddressNotInSubnet",
            f"Private static IP address {address} does not belong to the range of subnet prefix "
            f"{prefix}, or is one of those that are reserved in it.",
        )
    if str(address) not in had:
        try:
            await reserve(arm, str(address), id, by=by)
        except AddressTaken:
            raise _in_use(str(address)) from None
    return str(address)


def _in_use(address: str) -> ArmError:
    return ArmError(
        400,
        "PrivateIPAddressInUse",
        f"Private IP address {address} is already in use in the fleet; choose another.",
    )


def _with_address(wanted: Json, address: str, *, is_first: bool) -> Json:
    properties = object_at(wanted, "properties")
    return {
        **wanted,
        "properties": {
            "primary": is_first,
            "privateIPAddressVersion": "IPv6" if ":" in address else "IPv4",
            **properties,
            "privateIPAddress": address,
            "privateIPAllocationMethod": "Static" if is_static(wanted) else "Dynamic",
        },
    }


async def with_vm(arm: Arm, interface: ResourceRecord, body: Json) -> Json:
    """Returns the body with the MAC address.

    If a VM uses the interface, adds its id and `primary`.
    """
    properties = {k: v for k, v in body["properties"].items() if k != "virtualMachine"}
    properties["macAddress"] = mac_address(interface.id)
    vm = await vm_using(arm, interface)
    if vm is not None and vm.record is not None:
        properties["virtualMachine"] = {"id": vm.record.id}
        properties["primary"] = _is_primary(vm, interface)
    return {**body, "properties": properties}


def _is_primary(vm: VirtualMachineState, interface: ResourceRecord) -> bool:
    assert vm.record is not None
    found = references(vm.record.body)
    mine = next(each for each in found if same_id(text_at(each, "id"), interface.id))
    return len(found) == 1 or object_at(mine, "properties").get("primary") is True


def refuse_attached(interface: ResourceRecord, vm: VirtualMachineState | None) -> None:
    if vm is not None and vm.record is not None:
        raise ArmError(
            400,
            "NicInUse",
            f"Network Interface {interface.id} is used by existing resource {vm.record.id}. In "
            "order to delete the network interface, it must be dissociated from the resource.",
        )
