"""Finds the resource groups and subscriptions that ARM has created or that the fleet uses.

A group that is being deleted ends when its last instance is gone. No background task deletes its
records. The next lookup of the group does.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import scopes_in
from fairwarning.azure_api.networks.addresses import release
from fairwarning.azure_api.networks.attachments import INTERFACES, addresses_of
from fairwarning.azure_api.request import Arm
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.core.model import ENGINE
from fairwarning.core.resources import DEFAULT_LOCATION, DEFAULT_SUBSCRIPTION
from fairwarning.engine.protocols import RecordChanged

TYPE = "Microsoft.Resources/resourceGroups"


class Group(NamedTuple):
    id: str
    name: str
    """The name as the creator of the group spelled it."""
    record: ResourceRecord | None
    is_deleting: bool = False
    """True while the group is being deleted."""


def group_id(subscription: str, name: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{name}"


async def find_group(arm: Arm, subscription: str, name: str) -> Group | None:
    """Returns the group. It is None if there is no such group.

    If the deletion of the group has ended, this also deletes its records.
    """
    record = await arm.resources.find(group_id(subscription, name))
    if record is not None and not record.is_deleting:
        return Group(record.id, record.name, record)
    wanted = name.lower()
    spelled = next((g for g in fleet_groups(arm, subscription) if g.lower() == wanted), None)
    if spelled is None:
        if record is not None:
            await _delete_records(arm, record)
        return None
    if record is None:
        return Group(group_id(subscription, spelled), spelled, None)
    return await _deleting_group(arm, record)


async def _deleting_group(arm: Arm, record: ResourceRecord) -> Group:
    state = await arm.operations.state_of_id(record.operation)
    if not state.is_over or not await _has_instances(arm, record):
        return Group(record.id, record.name, record, is_deleting=True)
    # The deletion of an instance was cancelled or failed, or somebody added instances meanwhile.
    # The group is no longer being deleted.
    with contextlib.suppress(RecordChanged):
        record = await arm.resources.put(replace(record, is_deleting=False), by=ENGINE)
    return Group(record.id, record.name, record)


async def _has_instances(arm: Arm, record: ResourceRecord) -> bool:
    """Returns whether the group has instances.

    It asks the store, because the views may still show instances that another node deleted.
    """
    async for _ in scopes_in(arm, record.id.split("/")[2], record.name):
        return True
    return False


async def _delete_records(arm: Arm, record: ResourceRecord) -> None:
    try:
        await arm.resources.delete(record, by=ENGINE)
    except RecordChanged:
        return  # Somebody has just created a group of the same name.
    async for each in arm.resources.list_below(record.id):
        if each.type.lower() == INTERFACES:
            for address in addresses_of(each.body):
                await release(arm, address, each.id, by=ENGINE)
        await arm.resources.delete_by_id(each.id, by=ENGINE)


async def iterate_groups(arm: Arm, subscription: str) -> AsyncIterator[Group]:
    names = {each.lower(): each for each in fleet_groups(arm, subscription)}
    async for record in arm.resources.list_below(f"/subscriptions/{subscription}/resourceGroups"):
        if record.type == TYPE:
            names[record.name.lower()] = record.name
    for name in names.values():
        found = await find_group(arm, subscription, name)
        if found is not None:
            yield found


async def get_group(arm: Arm, subscription: str, name: str) -> Group:
    """Returns the group. Raises ArmError if there is no such group."""
    found = await find_group(arm, subscription, name)
    if found is None:
        raise ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
    return found


async def location_of(arm: Arm, group: Group) -> str:
    """Returns the group's location.

    If the group was not created through ARM, this is the location of its first resource.
    """
    if group.record is not None:
        return str(group.record.body["location"])
    start = f"{group.id.split('/')[2]}/{group.name}/"
    first = next((id for id in arm.control.views.ids() if id.startswith(start)), None)
    return (
        DEFAULT_LOCATION if first is None else (await arm.control.store.read(first)).roster.location
    )


def refuse_deleting(group: Group) -> None:
    if group.is_deleting:
        raise ArmError(
            409,
            "ResourceGroupBeingDeleted",
            f"The resource group '{group.name}' is in deprovisioning state and cannot perform "
            "this operation.",
        )


def subscriptions(arm: Arm) -> list[str]:
    """Returns the default subscription and all subscriptions in which the fleet has instances."""
    found = {scope_id.partition("/")[0] for scope_id in arm.control.views.ids()}
    return sorted({DEFAULT_SUBSCRIPTION, *found})


def spelled_subscription(arm: Arm, subscription: str) -> str:
    """Returns the id of the subscription as the fleet spells it.

    Raises ArmError if there is no such subscription.
    """
    for each in subscriptions(arm):
        if each.lower() == subscription.lower():
            return each
    raise ArmError(
        404,
        "SubscriptionNotFound",
        f"The subscription '{subscription}' could not be found. Use one that `az account list` "
        "shows.",
    )


def fleet_groups(arm: Arm, subscription: str) -> Iterator[str]:
    """Yields the names of the resource groups in which the fleet has instances."""
    seen = set()
    for scope_id in arm.control.views.ids():
        owner, group, _ = scope_id.split("/", 2)
        if owner == subscription and group not in seen:
            seen.add(group)
            yield group
