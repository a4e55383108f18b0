"""Subnets: parts of a network, kept inside it, and the addresses that they span."""

import ipaddress
from collections.abc import Iterator

from fairwarning.control.arm.bodies import object_at, objects_at, text_at
from fairwarning.control.arm.call import Arm, Json
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.paths import BadPath, ResourcePath, resource_path

Prefix = ipaddress.IPv4Network | ipaddress.IPv6Network
SUBNETS = "microsoft.network/virtualnetworks/subnets"


async def prefix_of(arm: Arm, subnet_id: str, version: int = 4) -> Prefix:
    """The range of a subnet that exists and has one of this version. Raises ArmError."""
    path = _subnet_path(subnet_id)
    network = await arm.shelf.find(path.up().id) if path is not None else None
    subnets = [] if network is None else subnets_of(network.body)
    for subnet in subnets:
        if path is not None and str(subnet.get("name", "")).lower() == path.name.lower():
            for prefix in prefixes(subnet):
                if prefix.version == version:
                    return prefix
    raise missing_reference(subnet_id)


def _subnet_path(subnet_id: str) -> ResourcePath | None:
    try:
        path = resource_path(subnet_id)
    except BadPath:
        return None
    return path if path.key == SUBNETS and not path.tail else None


def missing_reference(id: str) -> ArmError:
    return ArmError(
        400,
        "InvalidResourceReference",
        f"Resource {id} referenced by the request was not found. Please make sure that the "
        "referenced resource exists, and that both resources are in the same region.",
    )


def subnets_of(network: Json) -> list[Json]:
    return objects_at(network, "properties", "subnets")


def prefixes(subnet: Json) -> Iterator[Prefix]:
    """Raises ArmError if one is no range."""
    one = text_at(subnet, "properties", "addressPrefix")
    several = object_at(subnet, "properties").get("addressPrefixes")
    for text in several if isinstance(several, list) and several else [one] if one else []:
        yield read_prefix(text)


def read_prefix(text: object) -> Prefix:
    try:
        return ipaddress.ip_network(str(text))
    except ValueError:
        raise ArmError(
            400,
            "InvalidAddressPrefixFormat",
            f"Address prefix {text} is not formatted correctly. It should follow CIDR notation, "
            "for example 10.0.0.0/24.",
        ) from None


def refuse_network(name: str, network: Json) -> None:
    """What Azure checks of a network: ranges that can be read, and subnets that lie inside."""
    space = object_at(network, "properties", "addressSpace").get("addressPrefixes")
    whole = [read_prefix(each) for each in space] if isinstance(space, list) else []
    if not whole:
        raise ArmError(
            400,
            "NoAddressPrefixOrPoolProvided",
            f"Virtual network {name} has no addressSpace.addressPrefixes; give at least one, "
            "like 10.0.0.0/16.",
        )
    taken: list[Prefix] = []
    for subnet in subnets_of(network):
        for prefix in prefixes(subnet):
            _refuse_subnet(name, subnet, prefix, whole, taken)
            taken.append(prefix)


def _refuse_subnet(
    network: str, subnet: Json, prefix: Prefix, whole: list[Prefix], taken: list[Prefix]
) -> None:
    if not any(_contains(each, prefix) for each in whole):
        raise ArmError(
            400,
            "NetcfgSubnetRangeOutsideVnet",
            f"Subnet '{subnet.get('name')}' is not valid because its IP address range is outside "
            f"the IP address range of virtual network '{network}'.",
        )
    if any(each.version == prefix.version and each.overlaps(prefix) for each in taken):
        raise ArmError(
            400,
            "NetcfgSubnetRangesOverlap",
            f"Subnet '{subnet.get('name')}' is not valid because its IP address range overlaps "
            f"with that of an existing subnet in virtual network '{network}'.",
        )


def _contains(outer: Prefix, inner: Prefix) -> bool:
    return (
        outer.version == inner.version
        and int(outer.network_address) <= int(inner.network_address)
        and int(inner.broadcast_address) <= int(outer.broadcast_address)
    )
