"""Network resources as they are shown: what was kept, with ids and what Azure adds. Pure."""

import hashlib
import uuid

from fairwarning.azure_api.body_values import object_at, objects_at
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import Kept

_PARTS = {
    "virtualnetworks": ("subnets", "virtualNetworkPeerings"),
    "networkinterfaces": ("ipConfigurations",),
    "networksecuritygroups": ("securityRules",),
    "routetables": ("routes",),
    "loadbalancers": (
        "frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes",
        "inboundNatRules", "inboundNatPools", "outboundRules",
    ),
}  # fmt: skip
PART_LISTS = tuple(each for names in _PARTS.values() for each in names)


def part_lists(type: str) -> tuple[str, ...]:
    """The lists of parts that live inside a resource of this type, and have ids of their own."""
    return _PARTS.get(type.lower().rpartition("/")[2], ())


def part_list(type: str, word: str) -> str | None:
    """The list in Azure's spelling, if the parent of this type has one called like this."""
    return next((each for each in part_lists(type) if each.lower() == word.lower()), None)


def resource_json(kept: Kept) -> Json:
    properties = object_at(kept.body, "properties")
    parts = {
        name: [part_json(kept, name, each) for each in objects_at(properties, name)]
        for name in part_lists(kept.type)
        if name in properties
    }
    derived = {"provisioningState": "Succeeded", "resourceGuid": kept.unique_id}
    return {
        "name": kept.name,
        "id": kept.id,
        "etag": etag(kept),
        "type": kept.type,
        **kept.body,
        "properties": {**properties, **derived, **parts},
    }


def part_json(kept: Kept, list_name: str, part: Json) -> Json:
    return {
        **part,
        "id": f"{kept.id}/{list_name}/{part.get('name', '')}",
        "etag": etag(kept),
        "type": f"{kept.type}/{list_name}",
        "properties": {**object_at(part, "properties"), "provisioningState": "Succeeded"},
    }


def etag(kept: Kept) -> str:
    made = uuid.uuid5(uuid.NAMESPACE_URL, f"{kept.unique_id}/{kept.revision}")
    return f'W/"{made}"'


def mac_address(interface_id: str) -> str:
    """Stable, and from the range that nobody else's cards have."""
    first, *rest = hashlib.sha256(interface_id.lower().encode()).digest()[:6]
    return "-".join(f"{each:02X}" for each in (first & 0xFC | 0x02, *rest))
