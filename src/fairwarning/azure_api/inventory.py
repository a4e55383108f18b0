"""Everything there is, whatever its type: what the fleet has, and what is kept beside it."""

from collections.abc import AsyncIterator, Iterator

from fairwarning.azure_api.fleet_view import machines_in
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import Kept
from fairwarning.core.model import Scope, ScopeId, ScopeKind

PAGE = 1_000
MACHINES = "Microsoft.Compute/virtualMachines"
SCALE_SETS = "Microsoft.Compute/virtualMachineScaleSets"
_TYPES = {
    ScopeKind.AVAILABILITY_SET: "Microsoft.Compute/availabilitySets",
    ScopeKind.SCALE_SET: SCALE_SETS,
    ScopeKind.CLOUD_SERVICE: "Microsoft.Compute/cloudServices",
}


async def scopes_in(arm: Arm, subscription: str, group: str = "") -> AsyncIterator[Scope]:
    """Those that have instances; without a group, of the whole subscription."""
    start = f"{subscription}/"
    after = ScopeId(start)
    while page := await arm.control.store.scopes(after=after, limit=PAGE):
        for scope in page:
            if not scope.id.startswith(start):
                return
            is_meant = group.lower() in ("", scope.roster.resource_group.lower())
            if is_meant and scope.roster.live:
                yield scope
        after = page[-1].id


async def resources_in(arm: Arm, subscription: str, group: str = "") -> list[Json]:
    """In the short form of a list of all types."""
    found: dict[str, Json] = {}
    async for scope in scopes_in(arm, subscription, group):
        found |= {row["id"].lower(): row for row in _rows(scope)}
    place = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")
    async for kept in arm.shelf.below(place):
        key = kept.id.lower()
        if _is_resource(kept) and (key in found or not _is_gone(kept)):
            found[key] = _row(kept.id, kept.type, kept.name, kept.body)
    return list(found.values())


def _is_resource(kept: Kept) -> bool:
    """Neither a group, nor a deployment, nor a part of a resource."""
    return kept.type.count("/") == 1 and not kept.type.startswith("Microsoft.Resources/")


def _is_gone(kept: Kept) -> bool:
    """What the fleet has no instances of."""
    return kept.type == MACHINES or kept.is_going


def _rows(scope: Scope) -> Iterator[Json]:
    """The resource of the scope itself, and its machines if they are VMs of their own."""
    roster = scope.roster
    place = roster.subscription, roster.resource_group
    base: Json = {"location": roster.location}
    if roster.kind in _TYPES:
        type = _TYPES[roster.kind]
        yield _row(resource_id(*place, type, roster.resource), type, roster.resource, base)
    for machine in machines_in(scope):
        name = machine.instance.name
        said = {**base, "tags": dict(machine.instance.tags)}
        yield _row(resource_id(*place, MACHINES, name), MACHINES, name, said)


def _row(id: str, type: str, name: str, said: Json) -> Json:
    row: Json = {"id": id, "name": name, "type": type, "location": said.get("location", "")}
    return row | {key: said[key] for key in ("tags", "sku", "zones") if said.get(key)}
