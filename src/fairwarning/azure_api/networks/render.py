"""Renders network resources: the stored body, with ids and what Azure adds. Pure."""

import hashlib
import uuid

from fairwarning.azure_api.body_values import object_at, objects_at
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import ResourceRecord

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
    """Returns the lists of parts inside a resource of this type; each part has an id of its own."""
    return _PARTS.get(type.lower().rpartition("/")[2], ())


def part_list(type: str, word: str) -> str | None:
    """Returns the list's name in Azure's spelling; None if this type has no such list."""
    return next((each for each in part_lists(type) if each.lower() == word.lower()), None)


def resource_json(record: ResourceRecord) -> Json:
    properties = object_at(record.body, "properties")
    parts = {
        name: [part_json(record, name, each) for each in objects_at(properties, name)]
        for name in part_lists(record.type)
        if name in properties
    }
    derived = {"provisioningState": "Succeeded", "resourceGuid": record.unique_id}
    return {
        "name": record.name,
        "id": record.id,
        "etag": etag(record),
        "type": record.type,
        **record.body,
        "properties": {**properties, **derived, **parts},
    }


def part_json(record: ResourceRecord, list_name: str, part: Json) -> Json:
    return {
        **part,
        "id": f"{record.id}/{list_name}/{part.get('name', '')}",
        "etag": etag(record),
        "type": f"{record.type}/{list_name}",
        "properties": {**object_at(part, "properties"), "provisioningState": "Succeeded"},
    }


def etag(record: ResourceRecord) -> str:
    tag = uuid.uuid5(uuid.NAMESPACE_URL, f"{record.unique_id}/{record.revision}")
    return f'W/"{tag}"'


def mac_address(interface_id: str) -> str:
    """Always the same for an interface, and from the range that no real card uses."""
    first, *rest = hashlib.sha256(interface_id.lower().encode()).digest()[:6]
    return "-".join(f"{each:02X}" for each in (first & 0xFC | 0x02, *rest))
