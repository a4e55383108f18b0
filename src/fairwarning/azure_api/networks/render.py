"""Renders network resources. It adds ids and Azure's derived members to the stored body. Pure."""

import hashlib

from fairwarning.azure_api.body_values import object_at, objects_at
from fairwarning.azure_api.compute_defaults import without_empty_objects
from fairwarning.azure_api.etags import record_tag
from fairwarning.azure_api.networks.references import References, references_in
from fairwarning.azure_api.networks.usual_values import (
    LOAD_BALANCER_PARTS,
    PART_PROPERTIES,
    PROPERTIES,
    SKUS,
    default_security_rules,
)
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import ResourceRecord

_PARTS = {
    "virtualnetworks": ("subnets", "virtualNetworkPeerings"),
    "networkinterfaces": ("ipConfigurations",),
    "networksecuritygroups": ("securityRules",),
    "routetables": ("routes",),
    "loadbalancers": LOAD_BALANCER_PARTS,
}
PART_LISTS = tuple(each for names in _PARTS.values() for each in names)


def part_lists(type: str) -> tuple[str, ...]:
    """Returns the names of the members that are lists of parts. Each part has an id of its own."""
    return _PARTS.get(_kind(type), ())


def part_list(type: str, word: str) -> str | None:
    """Returns the name of the list in Azure's spelling. It is None if the type has no such list."""
    return next((each for each in part_lists(type) if each.lower() == word.lower()), None)


def resource_json(record: ResourceRecord) -> Json:
    properties = _completed(record)
    references = references_in(record)
    parts = {
        name: [_part_json(record, name, each, references) for each in objects_at(properties, name)]
        for name in part_lists(record.type)
        if name in properties
    }
    kind = _kind(record.type)
    if kind == "networksecuritygroups":
        name = "defaultSecurityRules"
        rules = default_security_rules()
        parts[name] = [_part_json(record, name, each, references) for each in rules]
    derived = {"provisioningState": "Succeeded", "resourceGuid": record.unique_id}
    sku = {**SKUS.get(kind, {}), **object_at(record.body, "sku")}
    return {
        "name": record.name,
        "id": record.id,
        "etag": record_tag(record),
        "type": record.type,
        **record.body,
        **({"sku": sku} if sku else {}),
        "properties": {**properties, **derived, **parts},
    }


def _completed(record: ResourceRecord) -> Json:
    """Returns the stored properties with Azure's defaults, without empty objects."""
    usual = PROPERTIES.get(_kind(record.type), {})
    return {**usual, **without_empty_objects(object_at(record.body, "properties"))}


def _kind(type: str) -> str:
    return type.lower().rpartition("/")[2]


def part_json(record: ResourceRecord, list_name: str, part: Json) -> Json:
    return _part_json(record, list_name, part, references_in(record))


def _part_json(record: ResourceRecord, list_name: str, part: Json, references: References) -> Json:
    id = f"{record.id}/{list_name}/{part.get('name', '')}"
    return {
        **part,
        "id": id,
        "etag": record_tag(record),
        "type": f"{record.type}/{list_name}",
        "properties": {
            **PART_PROPERTIES.get(list_name, {}),
            **object_at(part, "properties"),
            **references.get(id.lower(), {}),
            "provisioningState": "Succeeded",
        },
    }


def mac_address(interface_id: str) -> str:
    """Returns the MAC address of an interface, which is computed from its id.

    It is in the range of locally administered addresses, so no real network card has it.
    """
    first, *rest = hashlib.sha256(interface_id.lower().encode()).digest()[:6]
    return "-".join(f"{each:02X}" for each in (first & 0xFC | 0x02, *rest))
