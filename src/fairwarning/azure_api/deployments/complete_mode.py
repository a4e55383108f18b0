"""Deletes the resources of a group that a template in mode Complete leaves out.

Scale sets and VMs are deleted first, with the notice of their models. What they use can be
deleted only when they are gone. The first request for the deployment after that deletes it. As
with resource groups, no background task does so.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import SCALE_SETS, VIRTUAL_MACHINES, resources_in, scopes_in
from fairwarning.azure_api.operations import Operation
from fairwarning.azure_api.paths import resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS
from fairwarning.core.model import ScopeKind

_ORDER = (
    "microsoft.insights/", "microsoft.maintenance/", SCALE_SETS.lower(), VIRTUAL_MACHINES.lower(),
    "microsoft.compute/availabilitysets", "microsoft.network/networkinterfaces",
    "microsoft.network/loadbalancers", "microsoft.network/",
)  # fmt: skip
"""Types in the order of their deletion. Types that are not here are never deleted."""
_LAST = "microsoft.network/virtualnetworks"


class LeftOut(NamedTuple):
    """A resource of the group that the template does not have."""

    id: str
    json: Json

    @property
    def is_deletable(self) -> bool:
        return _rank(self.id) < len(_ORDER)


async def resources_left_out(
    arm: Arm, subscription: str, group: str, ids: Collection[str]
) -> list[LeftOut]:
    """Returns the resources of the group that are not in `ids` (lower case), in order of deletion.

    VMs of a flexible scale set are not returned, because they are deleted with their set.
    """
    of_sets: set[str] = set()
    async for scope in scopes_in(arm, subscription, group):
        if scope.roster.kind is ScopeKind.SCALE_SET:
            place = scope.roster.subscription, scope.roster.resource_group, VIRTUAL_MACHINES
            of_sets |= {resource_id(*place, each.name).lower() for each in scope.roster.live}
    rows = await resources_in(arm, subscription, group)
    found = [
        LeftOut(row["id"], row)
        for row in rows
        if row["id"].lower() not in ids and row["id"].lower() not in of_sets
    ]
    return sorted(found, key=lambda each: (_rank(each.id), each.id.lower()))


class Deleted(NamedTuple):
    id: str
    operation: Operation | None


async def delete_resources(
    arm: Arm, call: ArmCall, ids: Iterable[str]
) -> tuple[list[Deleted], dict[str, ArmError]]:
    """Deletes the resources in order. Returns the deletions, and an error for each in use.

    Raises ArmError if a resource is locked.
    """
    done: list[Deleted] = []
    refused: dict[str, ArmError] = {}
    for id in ids:
        path = resource_path(id)
        query = {"api-version": API_VERSIONS.get(path.namespace, call.api_version)}
        own = replace(call, method="DELETE", path=path, query=query, body=None, template=b"")
        try:
            done.append(Deleted(id, (await arm.answer(own)).operation))
        except ArmError as error:
            if error.failure.code == "ScopeLocked":
                raise
            refused[id] = error
    return done, refused


def _rank(id: str) -> int:
    key = resource_path(id).key
    if key == _LAST:
        return len(_ORDER) - 1
    ranks = (at for at, start in enumerate(_ORDER) if key.startswith(start))
    return next(ranks, len(_ORDER))
