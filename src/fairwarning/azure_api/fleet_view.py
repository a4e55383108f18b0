"""From an ARM path to what the fleet has there, whoever declared it.

Names are compared without regard to case. A resource without instances is not in the views,
so it is found by the spelling that its owner gave it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairwarning.azure_api.request import Arm
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Scope, ScopeId, ScopeKind
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import Place, scope_id


class Machine(NamedTuple):
    """An instance in its scope."""

    scope: Scope
    instance: Instance

    @property
    def number(self) -> int | None:
        """Of an instance of a uniform scale set."""
        return number_of(self.scope.roster, self.instance.name)


def ids_of_kind(arm: Arm, kind: ScopeKind, subscription: str, group: str = "") -> Iterator[ScopeId]:
    """Of all scopes that have instances; without a group, in the whole subscription."""
    for id in arm.control.views.ids():
        owner, its_group, its_kind, _ = id.split("/", 3)
        in_place = owner == subscription and (not group or its_group.lower() == group.lower())
        if in_place and its_kind == kind:
            yield id


def resource_names(ids: Iterable[ScopeId]) -> list[tuple[str, str]]:
    """Group and name of each resource, once."""
    return list(dict.fromkeys((id.split("/")[1], id.split("/")[3]) for id in ids))


async def scopes_of(
    arm: Arm, kind: ScopeKind, subscription: str, group: str, name: str
) -> list[Scope]:
    """All scopes of one resource, by the spelling that it has; empty if there is none.

    A scale set has one for each placement group, an availability set or a VM just one. Those
    that have lost their instances are there too. A resource that has instances comes before one
    of another spelling that has none.
    """
    found = await _scopes_spelled(arm, kind, subscription, group, name)
    if any(scope.roster.live for scope in found):
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


async def machine_called(arm: Arm, subscription: str, group: str, name: str) -> Machine | None:
    """A VM as ARM sees it: standalone, in an availability set, or in a flexible scale set."""
    for id in _ids_with(arm, subscription, group, name):
        scope = await _read(arm, id)
        for each in () if scope is None else machines_in(scope):
            if each.instance.name.lower() == name.lower():
                return each
    return None


def machines_in(scope: Scope) -> Iterator[Machine]:
    """The live instances that are VMs of their own in ARM; those of uniform sets are not."""
    is_role = scope.roster.kind is ScopeKind.CLOUD_SERVICE
    if not is_role and not scope.roster.is_numbered:
        yield from (Machine(scope, each) for each in scope.roster.live)


def _ids_with(arm: Arm, subscription: str, group: str, name: str) -> list[ScopeId]:
    views = arm.control.views
    start = f"{subscription}/{group}/".lower()
    exact = [each.view.scope_id for each in views.by_name(name)]
    found = [id for id in exact if id.lower().startswith(start)]
    return found or [id for id in views.search(name) if id.lower().startswith(start)]
