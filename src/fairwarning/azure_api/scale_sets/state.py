"""A scale set as it stands: its placement groups in the fleet, and what its owner said of it.

A set is there as long as it has instances, whoever declared it, or as long as somebody made
it in ARM and has not deleted it.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.fleet_view import Machine, ids_of_kind, resource_names, scopes_of
from fairwarning.azure_api.instance_views import events_of
from fairwarning.azure_api.operations import Operation, State
from fairwarning.azure_api.paths import ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm
from fairwarning.azure_api.resource_store import Kept
from fairwarning.core.deleting import takes_away
from fairwarning.core.identifiers import guid_of
from fairwarning.core.instants import Instant
from fairwarning.core.model import ENGINE, EventId, Roster, Scope, ScopeKind
from fairwarning.engine.protocols import RecordChanged
from fairwarning.operator_api.scale_sets import members

TYPE = "Microsoft.Compute/virtualMachineScaleSets"
INSTANCE_TYPE = f"{TYPE}/virtualMachines"


class Standing(NamedTuple):
    id: str
    groups: list[Scope]
    """At least one, perhaps without instances."""
    kept: Kept | None
    operation: Operation | None
    """The last one on the set itself."""
    state: State

    @property
    def roster(self) -> Roster:
        """Where the rules of the set are, which all its groups share."""
        return self.groups[0].roster

    @property
    def is_going(self) -> bool:
        return self.kept is not None and self.kept.is_going

    @property
    def machines(self) -> list[Machine]:
        """All that live, those about to be deleted too, in order of number or name."""
        found = [Machine(scope, each) for scope in self.groups for each in scope.roster.live]
        return sorted(found, key=lambda each: (each.number or 0, each.instance.name))

    @property
    def members(self) -> list[Machine]:
        """Those that are to stay."""
        return [Machine(scope, instance) for scope, instance in members(self.groups)]


def ends_of(machine: Machine) -> list[EventId]:
    """The events that delete it, if its deletion is under way."""
    return [each.id for each in events_of(machine) if takes_away(each)]


async def standing(arm: Arm, path: ResourcePath) -> Standing | None:
    """None if there is no such scale set. `path` may also name an instance of it."""
    name = path.names[0]
    id = resource_id(path.subscription, path.group, TYPE, name)
    kept = await arm.shelf.find(id)
    kind = ScopeKind.SCALE_SET
    spelled = name if kept is None else kept.name
    groups = await scopes_of(arm, kind, path.subscription, path.group, spelled)
    is_empty = not any(scope.roster.live for scope in groups)
    if is_empty and (kept is None or kept.is_going or not groups):
        await _forget(arm, kept)
        return None
    return await _standing(arm, groups, kept)


async def _standing(arm: Arm, groups: list[Scope], kept: Kept | None) -> Standing:
    operation = await arm.operations.find(kept.operation) if kept and kept.operation else None
    state = State(status="Succeeded")
    if operation is not None:
        state = await arm.operations.state(operation)
    if kept is not None and kept.is_going and state.is_over:
        if state.status == "Succeeded":
            # All that it had is gone; who is there now came later, and inherits nothing.
            await _forget(arm, kept)
            kept, operation = None, None
        else:
            # Somebody cancelled a deletion, or it failed: what is left is a set like any other.
            kept = replace(kept, is_going=False)
    roster = groups[0].roster
    own = resource_id(roster.subscription, roster.resource_group, TYPE, roster.resource)
    return Standing(kept.id if kept else own, groups, kept, operation, state)


def new_kept(found: Standing, now: Instant) -> Kept:
    """Of a set from elsewhere, which is kept from its first change in ARM on."""
    return Kept(
        id=found.id,
        type=TYPE,
        name=found.roster.resource,
        body={},
        created_ms=now,
        unique_id=guid_of(found.id.lower()),
    )


async def needed(arm: Arm, path: ResourcePath) -> Standing:
    """Raises ArmError if there is no such scale set."""
    found = await standing(arm, path)
    if found is None:
        raise not_found(TYPE, path.names[0], path.group)
    return found


def refuse_going(found: Standing) -> None:
    if found.is_going:
        raise ArmError(
            409,
            "Conflict",
            f"The scale set '{found.roster.resource}' is being deleted; wait until it is gone, "
            "then create it anew.",
        )


async def all_of(arm: Arm, subscription: str, group: str) -> AsyncIterator[Standing]:
    """Every scale set; without a group, of the whole subscription."""
    ids = ids_of_kind(arm, ScopeKind.SCALE_SET, subscription, group)
    found = {
        id.lower(): id
        for its_group, name in resource_names(ids)
        for id in [resource_id(subscription, its_group, TYPE, name)]
    }
    place = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")
    async for kept in arm.shelf.below(place):
        if kept.type == TYPE:
            found[kept.id.lower()] = kept.id
    for id in found.values():
        each = await standing(arm, resource_path(id))
        if each is not None:
            yield each


async def _forget(arm: Arm, kept: Kept | None) -> None:
    """Of a set that is gone. One that is only about to be made is left alone."""
    if kept is None or not kept.is_going:
        return
    try:
        await arm.shelf.drop(kept, by=ENGINE)
    except RecordChanged:
        return  # A new one of that name came this instant.
