"""Finds the address ranges of subnets, and checks the subnets of a network."""

import ipaddress
from collections.abc import Iterator, Sequence
from itertools import pairwise

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.paths import find_path
from fairwarning.azure_api.request import Arm, Json

Prefix = ipaddress.IPv4Network | ipaddress.IPv6Network
SUBNETS = "microsoft.network/virtualnetworks/subnets"
SUBNETS_MAX = 3_000
"""The maximum number of subnets in a network, as on Azure."""


async def prefix_of(arm: Arm, subnet_id: str, version: int = 4) -> Prefix:
    """Returns the address range of a subnet for this IP version.

    Raises ArmError if there is no such subnet or range.
    """
    path = find_path(subnet_id)
    if path is None or path.key != SUBNETS:
        raise missing_reference(subnet_id)
    network = await arm.resources.find(path.up().id)
    for subnet in [] if network is None else subnets_of(network.body):
        if str(subnet.get("name", "")).lower() == path.name.lower():
            for prefix in prefixes(subnet):
                if prefix.version == version:
                    return prefix
    raise missing_reference(subnet_id)


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
    """Yields the address ranges of a subnet. Raises ArmError if a range is not valid."""
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
            f"Address prefix {str(text)[:60]} is not formatted correctly. It should follow CIDR "
            "notation, for example 10.0.0.0/24.",
        ) from None


def refuse_network(name: str, network: Json) -> None:
    """Raises ArmError if the ranges or subnets of a network break Azure's rules.

    For example, subnets must not overlap or be outside the network. A body can have very many
    subnets, so no subnet is compared with all others.
    """
    space = object_at(network, "properties", "addressSpace").get("addressPrefixes")
    whole = [read_prefix(each) for each in space] if isinstance(space, list) else []
    if not whole:
        raise ArmError(
            400,
            "NoAddressPrefixOrPoolProvided",
            f"Virtual network {name} has no addressSpace.addressPrefixes; give at least one, "
            "like 10.0.0.0/16.",
        )
    subnets = subnets_of(network)
    if len(subnets) > SUBNETS_MAX:
        raise ArmError(
            400,
            "SubnetLimitExceeded",
            f"Virtual network {name} has {len(subnets)} subnets; use at most {SUBNETS_MAX}.",
        )
    refuse_same_names(f"virtual network '{name}'", subnets)
    found = [(prefix, text_at(each, "name")) for each in subnets for prefix in prefixes(each)]
    for prefix, _ in found:
        refuse_link_local(prefix, "InvalidAddressPrefix")
    _refuse_outside(name, found, whole)
    _refuse_overlap(name, found)


def refuse_link_local(
    found: Prefix | ipaddress.IPv4Address | ipaddress.IPv6Address, code: str
) -> None:
    """Raises ArmError for a link-local IPv6 address, because it does not identify an instance."""
    if found.version == 6 and found.is_link_local:
        raise ArmError(
            400,
            code,
            f"{found} is link-local (fe80::/10), so it does not say which instance has it; use "
            "one of fd00::/8.",
        )


def refuse_same_names(owner: str, parts: Sequence[Json]) -> None:
    """Raises ArmError if two parts have the same name, because parts are found only by name."""
    seen: set[str] = set()
    for each in parts:
        name = text_at(each, "name")
        if name.lower() in seen:
            raise ArmError(
                400,
                "DuplicateResourceName",
                f"The {owner} has two child resources with the same name ('{name[:80]}').",
            )
        seen.add(name.lower())


def _refuse_outside(
    network: str, subnets: Sequence[tuple[Prefix, str]], whole: Sequence[Prefix]
) -> None:
    known = set(whole)
    lengths = {(each.version, each.prefixlen) for each in whole}
    for prefix, name in subnets:
        above = (
            prefix.supernet(new_prefix=length)
            for version, length in lengths
            if version == prefix.version and length <= prefix.prefixlen
        )
        if not any(each in known for each in above):
            raise ArmError(
                400,
                "NetcfgSubnetRangeOutsideVnet",
                f"Subnet '{name[:80]}' is not valid because its IP address range is outside the "
                f"IP address range of virtual network '{network}'.",
            )


def _refuse_overlap(network: str, subnets: Sequence[tuple[Prefix, str]]) -> None:
    """Raises ArmError if two subnets overlap.

    It sorts the subnets by address, and then compares only neighbours.
    """
    ordered = sorted(subnets, key=lambda each: (each[0].version, int(each[0].network_address)))
    for (before, _), (prefix, name) in pairwise(ordered):
        if before.version == prefix.version and before.overlaps(prefix):
            raise ArmError(
                400,
                "NetcfgSubnetRangesOverlap",
                f"Subnet '{name[:80]}' is not valid because its IP address range overlaps with "
                f"that of an existing subnet in virtual network '{network}'.",
            )
