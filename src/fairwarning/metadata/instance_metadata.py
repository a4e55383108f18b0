"""Makes the response to GET /metadata/instance, which describes an instance in one api-version.

All values are strings, and unknown values are empty, as in Azure. Fields that the version does not
have are left out.
"""

import json
from collections.abc import Mapping

from fairwarning.core.identifiers import computer_name, placement_group_id, vm_id
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Roster, Scope, ScopeKind
from fairwarning.metadata.responses import LEAF_NEEDS_TEXT, NOT_FOUND, TEXT, Response

INSTANCE_VERSIONS: tuple[str, ...] = (
    "2017-03-01", "2017-04-02", "2017-08-01", "2017-10-01", "2017-12-01", "2018-02-01",
    "2018-04-02", "2018-10-01", "2019-02-01", "2019-03-11", "2019-04-30", "2019-06-01",
    "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01", "2020-06-01", "2020-07-15",
    "2020-09-01", "2020-10-01", "2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01",
    "2021-05-01", "2021-08-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13",
    "2023-07-01", "2023-11-15", "2024-03-15", "2024-07-17", "2025-04-07",
)  # fmt: skip

_ADDED: Mapping[str, str] = {
    "2017-04-02": "location name offer osType platformFaultDomain platformUpdateDomain publisher "
    "sku version vmId vmSize",
    "2017-08-01": "placementGroupId resourceGroupName subscriptionId tags",
    "2017-12-01": "vmScaleSetName zone",
    "2018-10-01": "azEnvironment provider",
    "2019-03-11": "resourceId",
    "2019-06-04": "tagsList",
    "2020-07-15": "osProfile",
    "2020-12-01": "evictionPolicy priority",
    "2021-03-01": "virtualMachineScaleSet",
    "2021-10-01": "platformSubFaultDomain",
    "2021-11-15": "host hostGroup",
    "2023-11-15": "physicalZone",
}
"""The fields of `compute` that each api-version has added."""
_SINCE = {name: version for version, names in _ADDED.items() for name in names.split()}
Tree = dict[str, "Tree"] | list["Tree"] | str


def answer(scope: Scope, instance: Instance, version: str, path: tuple[str, ...],
           *, is_text: bool) -> Response:  # fmt: skip
    """Return the value at `path`, a 404 if there is no value, or a 400 for a leaf as JSON."""
    node = _walk(tree(scope, instance, version), path)
    if node is None:
        return NOT_FOUND
    if is_text:
        return Response(status=200, body=_as_text(node).encode(), content_type=TEXT)
    if isinstance(node, str):
        return LEAF_NEEDS_TEXT
    body = json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(status=200, body=body)


def tree(scope: Scope, instance: Instance, version: str) -> Tree:
    """Return all metadata that this api-version has."""
    compute = {
        name: value for name, value in _compute(scope, instance).items() if version >= _SINCE[name]
    }
    return {"compute": compute, "network": {"interface": [_interface(instance)]}}


def _compute(scope: Scope, instance: Instance) -> dict[str, Tree]:
    roster = scope.roster
    is_set = roster.kind is ScopeKind.SCALE_SET
    tags = sorted(instance.tags.items())
    return {
        "azEnvironment": "AzurePublicCloud",
        "evictionPolicy": instance.eviction.value if instance.priority.value == "Spot" else "",
        "host": {"id": ""},
        "hostGroup": {"id": ""},
        "location": roster.location,
        "name": instance.name,
        "offer": "",
        "osProfile": {"computerName": computer_name(roster, instance)},
        "osType": "Linux",
        "physicalZone": "",
        "placementGroupId": placement_group_id(scope) if is_set else "",
        "platformFaultDomain": str(instance.fault_domain),
        "platformSubFaultDomain": "",
        "platformUpdateDomain": str(instance.update_domain),
        "priority": instance.priority.value,
        "provider": "Microsoft.Compute",
        "publisher": "",
        "resourceGroupName": roster.resource_group,
        "resourceId": _resource_id(roster, instance),
        "sku": "",
        "subscriptionId": roster.subscription,
        "tags": ";".join(f"{name}:{value}" for name, value in tags),
        "tagsList": [{"name": name, "value": value} for name, value in tags],
        "version": "",
        "virtualMachineScaleSet": {"id": _flexible_set_id(roster)},
        "vmId": vm_id(scope, instance),
        "vmScaleSetName": roster.resource if is_set else "",
        "vmSize": "",
        "zone": "",
    }


def _provider_path(roster: Roster) -> str:
    return (
        f"/subscriptions/{roster.subscription}/resourceGroups/{roster.resource_group}"
        "/providers/Microsoft.Compute"
    )


def _resource_id(roster: Roster, instance: Instance) -> str:
    number = number_of(roster, instance.name)
    if number is None:
        return f"{_provider_path(roster)}/virtualMachines/{instance.name}"
    set_path = f"virtualMachineScaleSets/{roster.resource}"
    return f"{_provider_path(roster)}/{set_path}/virtualMachines/{number}"


def _flexible_set_id(roster: Roster) -> str:
    if roster.kind is not ScopeKind.SCALE_SET or roster.is_numbered:
        return ""
    return f"{_provider_path(roster)}/virtualMachineScaleSets/{roster.resource}"


def _interface(instance: Instance) -> Tree:
    ipv4 = [address for address in instance.addresses if ":" not in address]
    ipv6 = [address for address in instance.addresses if ":" in address]
    return {
        "ipv4": {
            "ipAddress": [{"privateIpAddress": each, "publicIpAddress": ""} for each in ipv4],
            "subnet": [{"address": "", "prefix": ""}],
        },
        "ipv6": {"ipAddress": [{"privateIpAddress": each} for each in ipv6]},
        "macAddress": "",
    }


def _walk(node: Tree, path: tuple[str, ...]) -> Tree | None:
    """Return the node at the lower-case path, or None. As in Azure, keys match in any case."""
    for part in path:
        found: Tree | None = None
        if isinstance(node, dict):
            found = next((value for key, value in node.items() if key.lower() == part), None)
        elif isinstance(node, list) and part.isascii() and part.isdigit():
            index = int(part[:4])
            found = node[index] if index < len(node) else None
        if found is None:
            return None
        node = found
    return node


def _as_text(node: Tree) -> str:
    """Return the value of a leaf, or the names of the child nodes, one on each line."""
    if isinstance(node, str):
        return node
    if isinstance(node, dict):
        return "\n".join(
            key if isinstance(value, str) else f"{key}/" for key, value in node.items()
        )
    return "\n".join(f"{index}/" for index in range(len(node)))
