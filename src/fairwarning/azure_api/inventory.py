"""Lists the resources of all types in a group or subscription."""

from collections.abc import AsyncIterator, Iterator

from fairwarning.azure_api.fleet_view import vms_in
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.model import Scope, ScopeId, ScopeKind

PAGE = 1_000
VIRTUAL_MACHINES = "Microsoft.Compute/virtualMachines"
SCALE_SETS = "Microsoft.Compute/virtualMachineScaleSets"
_NO_RESOURCES = (
    "Microsoft.Resources/", "Microsoft.Authorization/",
    "Microsoft.Maintenance/configurationAssignments",
)  # fmt: skip
"""The types of records that are no resources of their own."""
_TYPES = {
    ScopeKind.AVAILABILITY_SET: "Microsoft.Compute/availabilitySets",
    ScopeKind.SCALE_SET: SCALE_SETS,
    ScopeKind.CLOUD_SERVICE: "Microsoft.Compute/cloudServices",
}


async def scopes_in(arm: Arm, subscription: str, group: str = "") -> AsyncIterator[Scope]:
    """Yields the scopes that have instances, and those of scale sets without instances.

    If `group` is empty, the whole subscription is searched.
    """
    start = f"{subscription}/"
    after = ScopeId(start)
    while page := await arm.control.store.scopes(after=after, limit=PAGE):
        for scope in page:
            if not scope.id.startswith(start):
                return
            is_in_group = group.lower() in ("", scope.roster.resource_group.lower())
            if is_in_group and scope.roster.is_standing:
                yield scope
        after = page[-1].id


async def resources_in(arm: Arm, subscription: str, group: str = "") -> list[Json]:
    """Returns the resources of the fleet and of the resource store in a short form.

    If `group` is empty, these are the resources of the whole subscription.
    """
    found: dict[str, Json] = {}
    async for scope in scopes_in(arm, subscription, group):
        found |= {row["id"].lower(): row for row in _rows(scope)}
    place = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")
    async for record in arm.resources.list_below(place):
        key = record.id.lower()
        if _is_resource(record) and (key in found or not _is_gone(record)):
            found[key] = _row(record.id, record.type, record.name, record.body)
    return list(found.values())


def _is_resource(record: ResourceRecord) -> bool:
    """Returns False for a group, a deployment or a part of a resource."""
    return record.type.count("/") == 1 and not record.type.startswith(_NO_RESOURCES)


def _is_gone(record: ResourceRecord) -> bool:
    """Returns whether the resource is gone. Call this only for a record without a scope in the
    fleet.
    """
    return record.type in (VIRTUAL_MACHINES, SCALE_SETS) or record.is_deleting


def _rows(scope: Scope) -> Iterator[Json]:
    """Yields the scope's own resource, if it has one, and each instance that is a separate VM."""
    roster = scope.roster
    place = roster.subscription, roster.resource_group
    base: Json = {"location": roster.location}
    if roster.kind in _TYPES:
        type = _TYPES[roster.kind]
        yield _row(resource_id(*place, type, roster.resource), type, roster.resource, base)
    for vm in vms_in(scope):
        name = vm.instance.name
        body = {**base, "tags": dict(vm.instance.tags)}
        yield _row(resource_id(*place, VIRTUAL_MACHINES, name), VIRTUAL_MACHINES, name, body)


def _row(id: str, type: str, name: str, body: Json) -> Json:
    row: Json = {"id": id, "name": name, "type": type, "location": body.get("location", "")}
    return row | {key: body[key] for key in ("tags", "sku", "zones") if body.get(key)}
