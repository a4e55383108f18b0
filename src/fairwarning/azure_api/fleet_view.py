"""Finds the scopes and instances of the fleet that an ARM path names, and lists the resources of a
group or subscription.

It does not matter whether they were declared through ARM or not. Names are compared without regard
to case. An availability set or a VM without instances is found only by its exact name, because the
views do not list it.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple

from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Scope, ScopeId, ScopeKind
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import Place, scope_id

PAGE = 1_000  # Few questions to the store, and each answer is short.
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


class FleetInstance(NamedTuple):
    """An instance together with its scope."""

    scope: Scope
    instance: Instance

    @property
    def number(self) -> int | None:
        """The number of an instance of a uniform scale set. It is None for all other instances."""
        return number_of(self.scope.roster, self.instance.name)


def ids_of_kind(arm: Arm, kind: ScopeKind, subscription: str, group: str = "") -> Iterator[ScopeId]:
    """Yields the ids of the scopes of this kind that have instances, and of scale sets without any.

    If `group` is empty, the whole subscription is searched.
    """
    for id in arm.control.views.ids():
        owner, its_group, its_kind, _ = id.split("/", 3)
        in_place = owner == subscription and (not group or its_group.lower() == group.lower())
        if in_place and its_kind == kind:
            yield id


def resource_names(ids: Iterable[ScopeId]) -> list[tuple[str, str]]:
    """Returns the group and the name of the resource of each id, without duplicates."""
    return list(dict.fromkeys((id.split("/")[1], id.split("/")[3]) for id in ids))


async def scopes_of_resource(
    arm: Arm, kind: ScopeKind, subscription: str, group: str, name: str
) -> list[Scope]:
    """Returns all scopes of one resource. The list is empty if there is no such resource.

    A scale set has a scope for each placement group. An availability set or a VM has one scope.
    Scopes without instances are included. If two resources differ only in upper and lower case, the
    one that has instances is returned.
    """
    found = await _scopes_spelled(arm, kind, subscription, group, name)
    if any(scope.roster.is_standing for scope in found):
        return found
    for its_group, its_name in resource_names(ids_of_kind(arm, kind, subscription, group)):
        if its_name.lower() == name.lower():
            return await _scopes_spelled(arm, kind, subscription, its_group, its_name)
    return found


async def _scopes_spelled(
    arm: Arm, kind: ScopeKind, subscription: str, group: str, name: str
) -> list[Scope]:
    place = Place(subscription=subscription, resource_group=group)
    scopes: list[Scope] = []
    while True:
        scope = await _read(arm, scope_id(place, kind, name, len(scopes)))
        if scope is None:
            return scopes
        scopes.append(scope)
        if kind is not ScopeKind.SCALE_SET:
            return scopes


async def _read(arm: Arm, id: ScopeId) -> Scope | None:
    try:
        return await arm.control.store.read(id)
    except Refused:
        return None


async def find_vm(arm: Arm, subscription: str, group: str, name: str) -> FleetInstance | None:
    """Finds a VM, which may be standalone, in an availability set or in a flexible scale set."""
    for id in await _ids_with(arm, subscription, group, name):
        scope = await _read(arm, id)
        for each in () if scope is None else vms_in(scope):
            if each.instance.name.lower() == name.lower():
                return each
    return None


def vms_in(scope: Scope) -> Iterator[FleetInstance]:
    """Yields the live instances that ARM shows as separate VMs.

    Instances of uniform scale sets and of cloud services are not separate VMs.
    """
    is_role = scope.roster.kind is ScopeKind.CLOUD_SERVICE
    if not is_role and not scope.roster.is_numbered:
        yield from (FleetInstance(scope, each) for each in scope.roster.live)


async def _ids_with(arm: Arm, subscription: str, group: str, name: str) -> list[ScopeId]:
    views = arm.control.views
    start = f"{subscription}/{group}/".lower()
    exact = [each.view.scope_id for each in views.by_name(name)]
    found = [id for id in exact if id.lower().startswith(start)]
    return found or [id for id in await views.search(name) if id.lower().startswith(start)]


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
