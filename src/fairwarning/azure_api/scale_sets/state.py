"""Finds scale sets. It reads their placement groups in the fleet and their stored records.

A scale set exists until it is deleted, with or without instances, whoever declared it.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.fleet_view import (
    FleetInstance,
    ids_of_kind,
    resource_names,
    scopes_of_resource,
)
from fairwarning.azure_api.instance_views import events_of
from fairwarning.azure_api.operations import Operation, OperationState
from fairwarning.azure_api.paths import ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.identifiers import guid_of
from fairwarning.core.instants import Instant
from fairwarning.core.model import ENGINE, EventId, Protection, Roster, Scope, ScopeKind
from fairwarning.core.pending_deletions import takes_away
from fairwarning.engine.protocols import RecordChanged
from fairwarning.operator_api.scale_sets import members

TYPE = "Microsoft.Compute/virtualMachineScaleSets"
INSTANCE_TYPE = f"{TYPE}/virtualMachines"


class ScaleSetState(NamedTuple):
    id: str
    groups: list[Scope]
    """The placement groups. There is at least one. They may have no instances."""
    record: ResourceRecord | None
    operation: Operation | None
    """The last operation on the scale set itself."""
    state: OperationState

    @property
    def roster(self) -> Roster:
        """The roster of the first group. All groups have the same rules."""
        return self.groups[0].roster

    @property
    def is_deleting(self) -> bool:
        return self.record is not None and self.record.is_deleting

    @property
    def instances(self) -> list[FleetInstance]:
        """All live instances, including those that are being deleted, sorted by number or name."""
        found = [FleetInstance(scope, each) for scope in self.groups for each in scope.roster.live]
        return sorted(found, key=lambda each: (each.number or 0, each.instance.name))

    @property
    def members(self) -> list[FleetInstance]:
        """The instances that are not being deleted."""
        return [FleetInstance(scope, instance) for scope, instance in members(self.groups)]

    @property
    def open_to_actions(self) -> list[FleetInstance]:
        """The members that an action on the whole set may change."""
        blocked = Protection.SET_ACTIONS
        return [each for each in self.members if blocked not in each.instance.protected_from]


def deletion_events(vm: FleetInstance) -> list[EventId]:
    """Returns the events that delete this instance. There are none if it is not being deleted."""
    return [each.id for each in events_of(vm) if takes_away(each)]


async def find_scale_set(arm: Arm, path: ResourcePath) -> ScaleSetState | None:
    """Returns the scale set. It is None if there is no such scale set.

    `path` may also name an instance of the scale set.
    """
    name = path.names[0]
    id = resource_id(path.subscription, path.group, TYPE, name)
    record = await arm.resources.find(id)
    kind = ScopeKind.SCALE_SET
    spelled = name if record is None else record.name
    groups = await scopes_of_resource(arm, kind, path.subscription, path.group, spelled)
    if not any(scope.roster.is_standing for scope in groups):
        await _delete_record(arm, record)
        return None
    return await _state_of(arm, groups, record)


async def _state_of(arm: Arm, groups: list[Scope], record: ResourceRecord | None) -> ScaleSetState:
    operation = await arm.operations.find(record.operation) if record and record.operation else None
    state = OperationState(status="Succeeded")
    if operation is not None:
        state = await arm.operations.state(operation)
    if record is not None and record.is_deleting and state.is_over:
        if state.status == "Succeeded":
            # The old instances are gone. The present ones were added later and inherit nothing.
            await _delete_record(arm, record)
            record, operation = None, None
        else:
            # The deletion failed or was cancelled: the set is no longer being deleted.
            record = replace(record, is_deleting=False)
    roster = groups[0].roster
    own = resource_id(roster.subscription, roster.resource_group, TYPE, roster.resource)
    return ScaleSetState(record.id if record else own, groups, record, operation, state)


def first_record(found: ScaleSetState, now: Instant) -> ResourceRecord:
    """Returns a new record for a scale set that was not created through ARM.

    It is needed for the first change through ARM.
    """
    return ResourceRecord(
        id=found.id,
        type=TYPE,
        name=found.roster.resource,
        body={},
        created_ms=now,
        unique_id=guid_of(found.id.lower()),
    )


async def get_scale_set(arm: Arm, path: ResourcePath) -> ScaleSetState:
    """Returns the scale set. Raises ArmError if there is no such scale set."""
    found = await find_scale_set(arm, path)
    if found is None:
        raise not_found(TYPE, path.names[0], path.group)
    return found


def refuse_deleting(found: ScaleSetState) -> None:
    if found.is_deleting:
        raise ArmError(
            409,
            "Conflict",
            f"The scale set '{found.roster.resource}' is being deleted; wait until it is gone, "
            "then create it anew.",
        )


async def iterate_scale_sets(
    arm: Arm, subscription: str, group: str
) -> AsyncIterator[ScaleSetState]:
    """Yields the scale sets of a group, or of the whole subscription if `group` is empty."""
    ids = ids_of_kind(arm, ScopeKind.SCALE_SET, subscription, group)
    found = {
        id.lower(): id
        for its_group, name in resource_names(ids)
        for id in [resource_id(subscription, its_group, TYPE, name)]
    }
    place = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")
    async for record in arm.resources.list_below(place):
        if record.type == TYPE:
            found[record.id.lower()] = record.id
    for id in found.values():
        each = await find_scale_set(arm, resource_path(id))
        if each is not None:
            yield each


async def _delete_record(arm: Arm, record: ResourceRecord | None) -> None:
    """Deletes the record of a deleted scale set. Keeps the record of one that is being created."""
    if record is None or not record.is_deleting:
        return
    try:
        await arm.resources.delete(record, by=ENGINE)
    except RecordChanged:
        return  # Somebody has just created a set of the same name.
