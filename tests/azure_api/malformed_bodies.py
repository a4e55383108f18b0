"""Bodies of every kind of request, and what can be wrong with them."""

import json
from collections.abc import Iterator
from typing import Any

from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, S
from tests.azure_api.scale_set_client import SETS, body_of, connected, told
from tests.azure_api.vm_client import NICS, SUBNET, VMS, interface_body, network_body, vm_body

PROVIDERS = f"{GROUP}/providers"
MAINTENANCE = "providers/Microsoft.Maintenance"
CONFIGURATION = f"{GROUP}/{MAINTENANCE}/maintenanceConfigurations/m"
DB = f"{VMS}/db"
POLICY = {"scheduledEventsPolicy": {"userInitiatedReboot": {"automaticallyApprove": True}}}
SETTING = f"{PROVIDERS}/Microsoft.Insights/autoscaleSettings/a"
ACTION = {"direction": "Decrease", "type": "ChangeCount", "value": "1", "cooldown": "PT5M"}
PROFILE = {
    "name": "p",
    "capacity": {"minimum": "1", "maximum": "3", "default": "1"},
    "rules": [{"metricTrigger": {"metricName": "CPU", "threshold": 1.5}, "scaleAction": ACTION}],
    "recurrence": {"frequency": "Week", "schedule": {"days": ["Monday"], "hours": [5]}},
}
FRONT = f"{NETWORK}/loadBalancers/lb/frontendIPConfigurations/f"
BALANCER = {
    "frontendIPConfigurations": [{"name": "f", "properties": {"subnet": {"id": SUBNET}}}],
    "loadBalancingRules": [
        {"name": "r", "properties": {"frontendIPConfiguration": {"id": FRONT}, "frontendPort": 80}}
    ],
}
RULE = {"name": "r", "properties": {"access": "Allow", "priority": 100, "direction": "Inbound"}}
TEMPLATE = {
    "$schema": "x",
    "contentVersion": "1.0.0.0",
    "parameters": {"p": {"type": "string", "defaultValue": "v"}},
    "variables": {"v": 1},
    "resources": [
        {
            "type": "Microsoft.Network/publicIPAddresses",
            "apiVersion": "2024-05-01",
            "name": "made",
            "location": "local",
            "tags": {"a": "[parameters('p')]"},
            "dependsOn": [],
        }
    ],
    "outputs": {"o": {"type": "string", "value": "[parameters('p')]"}},
}
DEPLOYMENT = {"mode": "Incremental", "parameters": {"p": {"value": "x"}}, "template": TEMPLATE}

REQUESTS: dict[tuple[str, str], Any] = {
    ("PUT", f"{S}/resourcegroups/g"): {"location": "local", "tags": {"a": "b"}, "managedBy": "x"},
    ("PUT", f"{NETWORK}/virtualNetworks/net"): {**network_body(), "tags": {"a": "b"}},
    ("PUT", f"{NETWORK}/virtualNetworks/net/subnets/inner"): {
        "properties": {"addressPrefix": "10.9.0.0/24"}
    },
    ("PUT", f"{NICS}/card"): interface_body(privateIPAllocationMethod="Dynamic"),
    ("PUT", f"{NETWORK}/publicIPAddresses/ip"): {
        "location": "local",
        "sku": {"name": "Standard"},
        "zones": ["1"],
        "properties": {"idleTimeoutInMinutes": 4, "ipTags": [{"tag": "x"}]},
    },
    ("PUT", f"{NETWORK}/loadBalancers/lb"): {"location": "local", "properties": BALANCER},
    ("PUT", f"{NETWORK}/networkSecurityGroups/nsg"): {
        "location": "local",
        "properties": {"securityRules": [RULE]},
    },
    ("PUT", f"{NETWORK}/applicationGateways/gate"): {
        "location": "local",
        "properties": {"probes": [{"name": "p"}]},
    },
    ("PUT", f"{COMPUTE}/availabilitySets/avail"): {
        "location": "local",
        "sku": {"name": "Aligned"},
        "properties": {"platformFaultDomainCount": 2, **POLICY},
    },
    ("PUT", f"{VMS}/v"): {
        **vm_body(
            osProfile={"computerName": "v", "linuxConfiguration": {"ssh": {"publicKeys": []}}},
            storageProfile={"osDisk": {"createOption": "FromImage"}, "dataDisks": [{"lun": 0}]},
            networkProfile={"networkInterfaces": [{"id": f"{NICS}/card"}]},
            **POLICY,
            **told(),
        ),
        "tags": {"a": "b"},
    },
    ("PATCH", DB): {"tags": {"a": "b"}, "properties": {**POLICY}},
    ("PUT", f"{SETS}/s"): {**body_of(1, **told(), **connected(SUBNET)), "zones": ["1"]},
    ("PATCH", f"{SETS}/workers"): {"sku": {"capacity": 3}, "properties": {**POLICY}},
    ("PUT", f"{SETS}/workers/virtualMachines/0"): {
        "properties": {"protectionPolicy": {"protectFromScaleIn": False}}
    },
    ("POST", f"{SETS}/workers/manualupgrade"): {"instanceIds": ["0"]},
    ("POST", f"{SETS}/workers/start"): {"instanceIds": ["0"]},
    ("POST", f"{SETS}/workers/reimage"): {"instanceIds": ["0"], "tempDisk": False},
    ("POST", f"{SETS}/workers/delete"): {"instanceIds": ["77"]},
    ("POST", f"{SETS}/workers/setOrchestrationServiceState"): {
        "serviceName": "AutomaticRepairs",
        "action": "Suspend",
    },
    ("POST", f"{VMS}/db/powerOff"): {"any": {"thing": 1}},
    ("PUT", f"{DB}/providers/Microsoft.Authorization/locks/k"): {
        "properties": {"level": "CanNotDelete", "owners": [{"applicationId": "x"}]}
    },
    ("PUT", f"{DB}/providers/Microsoft.Resources/tags/default"): {
        "properties": {"tags": {"a": "b"}}
    },
    ("PATCH", f"{S}/providers/Microsoft.Resources/tags/default"): {
        "operation": "Merge",
        "properties": {"tags": {"a": "b"}},
    },
    ("PUT", SETTING): {
        "location": "local",
        "properties": {"targetResourceUri": f"{SETS}/workers", "profiles": [PROFILE]},
    },
    ("PATCH", SETTING): {"properties": {"profiles": [PROFILE], "enabled": True}},
    ("POST", f"{SETTING}/trigger"): {"direction": "Increase"},
    ("PUT", CONFIGURATION): {
        "location": "local",
        "properties": {
            "maintenanceScope": "Host",
            "maintenanceWindow": {"startDateTime": "2026-02-01 22:00", "duration": "02:00"},
            "installPatches": {"linuxParameters": {"packageNameMasksToExclude": ["x"]}},
        },
    },
    ("PUT", f"{DB}/{MAINTENANCE}/configurationAssignments/c"): {
        "properties": {"maintenanceConfigurationId": CONFIGURATION}
    },
    ("PUT", f"{DB}/{MAINTENANCE}/applyUpdates/default"): {"properties": {"status": "Pending"}},
    ("POST", f"{DB}/{MAINTENANCE}/scheduledevents"): {"value": ["x"]},
    ("PUT", f"{PROVIDERS}/Microsoft.Authorization/roleAssignments/r"): {
        "properties": {"roleDefinitionId": "x"}
    },
    ("PUT", f"{PROVIDERS}/Microsoft.Resources/deployments/d"): {"properties": DEPLOYMENT},
    ("POST", f"{PROVIDERS}/Microsoft.Resources/deployments/d/validate"): {"properties": DEPLOYMENT},
    ("POST", f"{PROVIDERS}/Microsoft.Resources/deployments/d/whatIf"): {"properties": DEPLOYMENT},
}
REFUSED = ("workers/delete", "scheduledevents", "roleAssignments/r")
"""How the paths end whose bodies above are refused as they are, all others are accepted."""
WRONG: list[Any] = [
    None, True, 5, -1, 1.5, 10**9, 10**18, 10**30, 1e308, "", "x", "\u0000", "x" * 2000, [], [[]],
    [None], [{}], {}, {"": ""}, {"x": {"y": []}},
]  # fmt: skip
RAW = [
    b"[]", b"5", b"null", b'"x"', b"{", b'{"properties": {', b"\xff\xfe", b'{"a": NaN}',
    b'{"properties": 1e999}', b'{"tags": ' + b'{"a": ' * 200 + b"1" + b"}" * 201,
    b"[" * 5000, b'{"properties": ' + b"9" * 5000 + b"}", b'{"a": "\\ud800"}',
]  # fmt: skip


def malformed(body: Any) -> Iterator[bytes]:
    """Bodies with one mistake each: a wrong value at each level, or a name there twice."""
    yield from RAW
    yield json.dumps(_deep()).encode()
    for path in _paths(body):
        for value in WRONG:
            yield json.dumps(_with(body, path, value)).encode()
    for path in _paths(body):
        yield json.dumps(_with_twin(body, path)).encode()


def _deep() -> Any:
    found: Any = {}
    for _ in range(90):
        found = {"properties": found}
    return found


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for name, each in value.items() if isinstance(value, dict) else ():
        yield from _paths(each, (*path, name))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _with_twin(value: Any, path: tuple[Any, ...]) -> Any:
    """The body with the member at the path there twice, in other case."""
    if len(path) > 1:
        return _with(value, path[:1], _with_twin(value[path[0]], path[1:]))
    twin = path[0]
    return {**value, twin.swapcase(): value[twin]} if isinstance(value, dict) else value
