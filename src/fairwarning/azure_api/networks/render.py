"""Renders network resources. It adds ids and Azure's derived members to the stored body. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.compute_defaults import without_empty_objects
from fairwarning.azure_api.etags import record_tag
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import ResourceRecord

LOAD_BALANCER_PARTS = (
    "frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes",
    "inboundNatRules", "inboundNatPools", "outboundRules",
)  # fmt: skip
PROPERTIES: dict[str, Json] = {
    "virtualnetworks": {"subnets": [], "virtualNetworkPeerings": [], "enableDdosProtection": False},
    "networkinterfaces": {
        "ipConfigurations": [],
        "enableAcceleratedNetworking": False,
        "enableIPForwarding": False,
        "vnetEncryptionSupported": False,
        "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
    },
    "publicipaddresses": {
        "publicIPAddressVersion": "IPv4",
        "publicIPAllocationMethod": "Dynamic",
        "idleTimeoutInMinutes": 4,
        "ipTags": [],
    },
    "networksecuritygroups": {"securityRules": [], "flushConnection": False},
    "routetables": {"routes": [], "disableBgpRoutePropagation": False},
    "loadbalancers": {name: [] for name in LOAD_BALANCER_PARTS},
}
SKUS: dict[str, Json] = {
    "publicipaddresses": {"name": "Basic", "tier": "Regional"},
    "loadbalancers": {"name": "Basic", "tier": "Regional"},
    "publicipprefixes": {"name": "Standard", "tier": "Regional"},
}
PART_PROPERTIES: dict[str, Json] = {
    "frontendIPConfigurations": {"privateIPAllocationMethod": "Dynamic"},
    "loadBalancingRules": {
        "enableFloatingIP": False,
        "idleTimeoutInMinutes": 4,
        "loadDistribution": "Default",
        "disableOutboundSnat": False,
    },
    "inboundNatRules": {"enableFloatingIP": False, "idleTimeoutInMinutes": 4},
    "probes": {"probeThreshold": 1},
}
_RULES = (
    ("AllowVnetInBound", "Allow inbound traffic from all VMs in VNET",
     "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Inbound"),
    ("AllowAzureLoadBalancerInBound", "Allow inbound traffic from azure load balancer",
     "AzureLoadBalancer", "*", "Allow", 65001, "Inbound"),
    ("DenyAllInBound", "Deny all inbound traffic", "*", "*", "Deny", 65500, "Inbound"),
    ("AllowVnetOutBound", "Allow outbound traffic from all VMs to all VMs in VNET",
     "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Outbound"),
    ("AllowInternetOutBound", "Allow outbound traffic from all VMs to Internet",
     "*", "Internet", "Allow", 65001, "Outbound"),
    ("DenyAllOutBound", "Deny all outbound traffic", "*", "*", "Deny", 65500, "Outbound"),
)  # fmt: skip
"""The name, description, source, destination, access, priority and direction of each rule."""
_PARTS = {
    "virtualnetworks": ("subnets", "virtualNetworkPeerings"),
    "networkinterfaces": ("ipConfigurations",),
    "networksecuritygroups": ("securityRules",),
    "routetables": ("routes",),
    "loadbalancers": LOAD_BALANCER_PARTS,
}
PART_LISTS = tuple(each for names in _PARTS.values() for each in names)
PUBLIC_ADDRESSES = "microsoft.network/publicipaddresses"
LOAD_BALANCERS = "microsoft.network/loadbalancers"
_REFERRING = ("loadBalancingRules", "inboundNatRules", "inboundNatPools", "outboundRules")
_TARGETS = ("frontendIPConfiguration", "backendAddressPool", "probe")
_TARGET_LISTS = ("frontendIPConfigurations", "backendAddressPools")
References = Mapping[str, Mapping[str, list[Json]]]
"""The rules that refer to each part: by the part's id in lower case, then by the kind of rule."""


def default_security_rules() -> list[Json]:
    """Returns the rules that every network security group has, without their ids."""
    return [
        {
            "name": name,
            "properties": {
                "description": description,
                "protocol": "*",
                "sourcePortRange": "*",
                "destinationPortRange": "*",
                "sourceAddressPrefix": source,
                "destinationAddressPrefix": destination,
                "access": access,
                "priority": priority,
                "direction": direction,
            },
        }
        for name, description, source, destination, access, priority, direction in _RULES
    ]


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


def references_in(record: ResourceRecord) -> References:
    """Returns the references that the rules of a load balancer make to its other parts. Pure.

    Other resources have none.
    """
    found: dict[str, dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for name in _REFERRING if record.type.lower() == LOAD_BALANCERS else ():
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
