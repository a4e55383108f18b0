"""Finds what refers to a part of a load balancer, or to a public address."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import ResourceRecord

PUBLIC_ADDRESSES = "microsoft.network/publicipaddresses"
LOAD_BALANCERS = "microsoft.network/loadbalancers"
_RULES = ("loadBalancingRules", "inboundNatRules", "inboundNatPools", "outboundRules")
_TARGETS = ("frontendIPConfiguration", "backendAddressPool", "probe")
_TARGET_LISTS = ("frontendIPConfigurations", "backendAddressPools")
_ADDRESS_USERS = {
    "microsoft.network/networkinterfaces": "ipConfigurations",
    LOAD_BALANCERS: "frontendIPConfigurations",
}
References = Mapping[str, Mapping[str, list[Json]]]
"""The references to each part: by the part's id in lower case, then by the list of the rules."""


def references_in(record: ResourceRecord) -> References:
    """Returns the references that the rules of a load balancer make to its other parts. Pure.

    Other resources have none.
    """
    found: dict[str, dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for name in _RULES if record.type.lower() == LOAD_BALANCERS else ():
        for rule in objects_at(record.body, "properties", name):
            own = f"{record.id}/{name}/{text_at(rule, 'name')}"
            for target in dict.fromkeys(_targets(object_at(rule, "properties"))):
                found[target][name].append({"id": own})
    return found


def _targets(rule: Json) -> Iterator[str]:
    for name in _TARGETS:
        yield text_at(rule, name, "id").lower()
    for name in _TARGET_LISTS:
        for each in objects_at(rule, name):
            yield text_at(each, "id").lower()


async def users_of_public_addresses(arm: Arm, subscription: str) -> dict[str, str]:
    """Returns the id of the IP configuration that uses each public address.

    The ids of the addresses are in lower case. Addresses that nothing uses are not in the result.
    """
    found: dict[str, str] = {}
    async for record in arm.resources.list_below(f"/subscriptions/{subscription}"):
        name = _ADDRESS_USERS.get(record.type.lower())
        for each in objects_at(record.body, "properties", name) if name else []:
            used = text_at(each, "properties", "publicIPAddress", "id")
            if used:
                own = f"{record.id}/{name}/{text_at(each, 'name')}"
                found.setdefault(f"/{used.strip('/')}".lower(), own)
    return found
