"""Holds the values that Azure shows of network resources if the owner has not set them. Pure."""

from fairwarning.azure_api.request import Json

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
