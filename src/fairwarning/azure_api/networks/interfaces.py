"""Interfaces: each of their IP configurations gets a private address and keeps it."""

import ipaddress
from collections.abc import Collection
from typing import NamedTuple

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.networks.addresses import (
    Taken,
    allocate,
    release,
    reserve,
    usable_range,
)
from fairwarning.azure_api.networks.attachments import addresses_of, references, user_of
from fairwarning.azure_api.networks.render import mac_address
from fairwarning.azure_api.networks.subnets import (
    prefix_of,
    refuse_link_local,
    refuse_same_names,
)
from fairwarning.azure_api.paths import same_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.state import Standing
from fairwarning.core.model import Actor

CONFIGURATIONS_MAX = 256
"""As on Azure."""
_DERIVED = ("virtualMachine", "macAddress", "primary", "resourceGuid", "vnetEncryptionSupported")


class Settled(NamedTuple):
    body: Json
    claimed: tuple[str, ...]
    """To be given back if the body is not kept after all."""
    freed: tuple[str, ...]
    """To be given back once it is."""


async def settle(arm: Arm, id: str, body: Json, before: Json, *, by: Actor) -> Settled:
    """The body with an address for each configuration. Raises ArmError."""
    had = addresses_of(before)
    claimed: list[str] = []
    configurations: list[Json] = []
    asked = objects_at(body, "properties", "ipConfigurations")
    _refuse_too_many(id, asked)
    refuse_same_names(f"network interface {id}", asked)
    try:
        for wanted in asked:
            known = _same_configuration(before, wanted)
            address = await _address(arm, id, wanted, known, had, by)
            _refuse_twice(address, configurations)
            if address not in had:
                claimed.append(address)
            configurations.append(_with_address(wanted, address, is_first=not configurations))
    except Exception:
        await give_back(arm, claimed, id, by=by)
        raise
    properties = {k: v for k, v in object_at(body, "properties").items() if k not in _DERIVED}
    bond = object_at(before, "properties", "virtualMachine")
    if bond:
        properties["virtualMachine"] = bond
    body = {**body, "properties": {**properties, "ipConfigurations": configurations}}
    now = set(addresses_of(body))
    return Settled(body, tuple(claimed), tuple(each for each in had if each not in now))


def _refuse_too_many(id: str, configurations: list[Json]) -> None:
    if len(configurations) > CONFIGURATIONS_MAX:
        raise ArmError(
            400,
            "IpConfigurationLimitExceeded",
            f"Network interface {id} has {len(configurations)} IP configurations; use at most "
            f"{CONFIGURATIONS_MAX}.",
        )


def _refuse_twice(address: str, configurations: list[Json]) -> None:
    """What one configuration has, no other of the same interface can have."""
    if any(text_at(each, "properties", "privateIPAddress") == address for each in configurations):
        raise _in_use(address)


async def give_back(arm: Arm, addresses: Collection[str], id: str, *, by: Actor) -> None:
    """Those of them that the interface of this id does not have."""
    kept = await arm.shelf.find(id)
    # Another request for the same interface may have come first, with the same address.
    has = [] if kept is None else addresses_of(kept.body)
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
            "SubnetNotProvided",
            f"IP configuration '{text_at(wanted, 'name')}' of {id} has no subnet.id; name the "
            "subnet that the address is to come from.",
        )
    version = 6 if text_at(wanted, "properties", "privateIPAddressVersion") == "IPv6" else 4
    asked = text_at(wanted, "properties", "privateIPAddress")
    if is_static(wanted) and asked:
        return await _asked_address(arm, id, asked, subnet, had, by)
    if kept := text_at(known, "properties", "privateIPAddress"):
        return kept
    return (await allocate(arm, subnet, 1, by=by, owner=id, version=version))[0]


def is_static(configuration: Json) -> bool:
    return text_at(configuration, "properties", "privateIPAllocationMethod").lower() == "static"


async def _asked_address(
    arm: Arm, id: str, asked: str, subnet: str, had: Collection[str], by: Actor
) -> str:
    try:
        address = ipaddress.ip_address(asked)
    except ValueError:
        raise ArmError(
            400, "InvalidPrivateIPAddress", f"'{asked[:60]}' is no IP address; write 10.0.0.4."
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
        except Taken:
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


async def with_user(arm: Arm, interface: Kept, shown: Json) -> Json:
    """The interface as it is shown: with the VM that really uses it, if any."""
    properties = {k: v for k, v in shown["properties"].items() if k != "virtualMachine"}
    properties["macAddress"] = mac_address(interface.id)
    user = await user_of(arm, interface)
    if user is not None and user.kept is not None:
        properties["virtualMachine"] = {"id": user.kept.id}
        properties["primary"] = _is_primary(user, interface)
    return {**shown, "properties": properties}


def _is_primary(user: Standing, interface: Kept) -> bool:
    assert user.kept is not None
    found = references(user.kept.body)
    mine = next(each for each in found if same_id(text_at(each, "id"), interface.id))
    return len(found) == 1 or object_at(mine, "properties").get("primary") is True


def refuse_used(interface: Kept, user: Standing | None) -> None:
    if user is not None and user.kept is not None:
        raise ArmError(
            400,
            "NicInUse",
            f"Network Interface {interface.id} is used by existing resource {user.kept.id}. In "
            "order to delete the network interface, it must be dissociated from the resource.",
        )
