"""Reads the tables of Azure's types. Pure, except that it reads the table files.

A table has one line for each type, and below it one line for each member, indented by a space: its
name and its kind. The kind is `str`, `bool`, `int`, `num`, `any` (not checked), another type of the
table, or the values of an enumeration (`=Manual|Automatic`). `[` before a kind makes it a list, and
`{` an object whose names the owner chooses. `!` after a kind means that the member is read-only.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fairwarning.azure_api.paths import ResourcePath


class Member(NamedTuple):
    name: str
    """The name in Azure's spelling."""
    kind: str
    is_read_only: bool


Table = Mapping[str, Mapping[str, Member]]
"""The members of each type, by their names in lower case."""


class BodyType(NamedTuple):
    """The type of a request's body."""

    table: Table
    name: str


_IDS = "VirtualMachineScaleSetVMInstanceRequiredIDs"
_REIMAGE = "VirtualMachineScaleSetReimageParameters"
_COMPUTE = {
    "virtualmachines": "VirtualMachine",
    "virtualmachinescalesets": "VirtualMachineScaleSet",
    "virtualmachinescalesets/virtualmachines": "VirtualMachineScaleSetVM",
    "availabilitysets": "AvailabilitySet",
}
_ACTIONS = {
    **{
        ("virtualmachinescalesets", verb): _IDS
        for verb in (
            "delete", "restart", "redeploy", "start", "poweroff", "deallocate", "manualupgrade",
            "performmaintenance",
        )
    },
    **{
        (type, verb): _REIMAGE
        for type in _COMPUTE
        for verb in ("reimage", "reimageall")
    },
    ("virtualmachinescalesets", "setorchestrationservicestate"): "OrchestrationServiceStateInput",
}  # fmt: skip
_NETWORK = {
    "virtualnetworks": "VirtualNetwork",
    "networkinterfaces": "NetworkInterface",
    "publicipaddresses": "PublicIPAddress",
    "loadbalancers": "LoadBalancer",
    "networksecuritygroups": "NetworkSecurityGroup",
    "routetables": "RouteTable",
    "natgateways": "NatGateway",
    "applicationsecuritygroups": "ApplicationSecurityGroup",
    "publicipprefixes": "PublicIPPrefix",
    "bastionhosts": "BastionHost",
    "privateendpoints": "PrivateEndpoint",
}
_OTHERS = {
    ("Microsoft.Resources", "subscriptions/resourcegroups", ""): ("resources", "ResourceGroup"),
    ("Microsoft.Resources", "tags", ""): ("resources", "TagsResource"),
    ("Microsoft.Authorization", "locks", ""): ("authorization", "ManagementLockObject"),
    ("Microsoft.Insights", "autoscalesettings", ""): ("insights", "AutoscaleSettingResource"),
    ("Microsoft.Insights", "autoscalesettings", "trigger"): ("insights", "AutoscaleTrigger"),
    ("Microsoft.Maintenance", "maintenanceconfigurations", ""): (
        "maintenance", "MaintenanceConfiguration",
    ),
    ("Microsoft.Maintenance", "configurationassignments", ""): (
        "maintenance", "ConfigurationAssignment",
    ),
    ("Microsoft.Maintenance", "applyupdates", ""): ("maintenance", "ApplyUpdate"),
    ("Microsoft.Maintenance", "", "scheduledevents"): ("maintenance", "ScheduledEventsIdList"),
}  # fmt: skip
"""The table and the type of a body, by the namespace, the type and the tail of the path."""


def body_type(path: ResourcePath, method: str) -> BodyType | None:
    """Returns the type of the body of a PUT, PATCH or POST, or None if the type is not known."""
    type = "/".join(path.types).lower()
    match path.namespace:
        case "Microsoft.Compute":
            name = _ACTIONS.get((type, path.tail)) if path.tail else _COMPUTE.get(type)
            return None if name is None else BodyType(load_table("compute"), name)
        case "Microsoft.Network" if not path.tail:
            return _network_type(type)
        case "Microsoft.Resources" if type == "tags" and method == "PATCH":
            return BodyType(load_table("resources"), "TagsPatchResource")
        case _:
            table, name = _OTHERS.get((path.namespace, type, path.tail), ("", ""))
            return BodyType(load_table(table), name) if name else None


def _network_type(type: str) -> BodyType | None:
    """Returns the type of a network resource, or of a part of one such as a subnet."""
    resource, _, part = type.partition("/")
    name = _NETWORK.get(resource)
    if name is None:
        return None
    table = load_table("network")
    if not part:
        return BodyType(table, name)
    found = table[table[name]["properties"].kind].get(part)
    return None if found is None else BodyType(table, found.kind.removeprefix("["))


@cache
def load_table(name: str) -> Table:
    text = files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, Member]] = {}
    members: dict[str, Member] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            members = found[line] = {}
            continue
        member, kind = line.split()
        members[member.lower()] = Member(member, kind.removesuffix("!"), kind.endswith("!"))
    return found
