"""A resource group as it stands: made by its owner, or only there because the fleet is in it.

A group that is being deleted goes with its last instance, and takes along all that is kept
below it. Nothing works in the background, so whoever looks next clears it away.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.inventory import scopes_in
from fairwarning.azure_api.networks.addresses import release
from fairwarning.azure_api.networks.attachments import INTERFACES, addresses_of
from fairwarning.azure_api.request import Arm
from fairwarning.azure_api.resource_store import Kept
from fairwarning.core.model import ENGINE
from fairwarning.core.resources import DEFAULT_LOCATION, DEFAULT_SUBSCRIPTION
from fairwarning.engine.protocols import RecordChanged

TYPE = "Microsoft.Resources/resourceGroups"


class Group(NamedTuple):
    id: str
    name: str
    """As it is spelled."""
    kept: Kept | None
    is_going: bool = False
    """Its deletion is under way."""


def group_id(subscription: str, name: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{name}"


async def standing(arm: Arm, subscription: str, name: str) -> Group | None:
    """None if there is no such group."""
    kept = await arm.shelf.find(group_id(subscription, name))
    if kept is not None and not kept.is_going:
        return Group(kept.id, kept.name, kept)
    wanted = name.lower()
    spelled = next((g for g in fleet_groups(arm, subscription) if g.lower() == wanted), None)
    if spelled is None:
        if kept is not None:
            await _forget(arm, kept)
        return None
    if kept is None:
        return Group(group_id(subscription, spelled), spelled, None)
    return await _going(arm, kept)


async def _going(arm: Arm, kept: Kept) -> Group:
    state = await arm.operations.state_of_id(kept.operation)
    if not state.is_over or not await _has_machines(arm, kept):
        return Group(kept.id, kept.name, kept, is_going=True)
    # A deletion in it was cancelled or failed, or somebody added machines meanwhile: what is left
    # is a group like any other.
    with contextlib.suppress(RecordChanged):
        kept = await arm.shelf.put(replace(kept, is_going=False), by=ENGINE)
    return Group(kept.id, kept.name, kept)


async def _has_machines(arm: Arm, kept: Kept) -> bool:
    """As the store knows it: on another node the views may still show who has just gone."""
    async for _ in scopes_in(arm, kept.id.split("/")[2], kept.name):
        return True
    return False


async def _forget(arm: Arm, kept: Kept) -> None:
    try:
        await arm.shelf.drop(kept, by=ENGINE)
    except RecordChanged:
        return  # A new group of that name came this instant.
    async for each in arm.shelf.below(kept.id):
        if each.type.lower() == INTERFACES:
            for address in addresses_of(each.body):
                await release(arm, address, each.id, by=ENGINE)
        await arm.shelf.drop_any(each.id, by=ENGINE)


async def groups_of(arm: Arm, subscription: str) -> AsyncIterator[Group]:
    names = {each.lower(): each for each in fleet_groups(arm, subscription)}
    async for kept in arm.shelf.below(f"/subscriptions/{subscription}/resourceGroups"):
        if kept.type == TYPE:
            names[kept.name.lower()] = kept.name
    for name in names.values():
        found = await standing(arm, subscription, name)
        if found is not None:
            yield found


async def needed(arm: Arm, subscription: str, name: str) -> Group:
    """Raises ArmError if there is no such group."""
    found = await standing(arm, subscription, name)
    if found is None:
        raise ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
    return found


async def location_of(arm: Arm, group: Group) -> str:
    """Of a group that nobody made, where its first resource is."""
    if group.kept is not None:
        return str(group.kept.body["location"])
    start = f"{group.id.split('/')[2]}/{group.name}/"
    first = next((id for id in arm.control.views.ids() if id.startswith(start)), None)
    return (
        DEFAULT_LOCATION if first is None else (await arm.control.store.read(first)).roster.location
    )


def refuse_going(group: Group) -> None:
    if group.is_going:
        raise ArmError(
            409,
            "ResourceGroupBeingDeleted",
            f"The resource group '{group.name}' is in deprovisioning state and cannot perform "
            "this operation.",
        )


# Which subscriptions and resource groups there are, and how they are spelled.
def subscriptions(arm: Arm) -> list[str]:
    """The default one, and all that the fleet has instances in."""
    found = {scope_id.partition("/")[0] for scope_id in arm.control.views.ids()}
    return sorted({DEFAULT_SUBSCRIPTION, *found})


def subscription_spelled(arm: Arm, subscription: str) -> str:
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
    """Resource groups that the fleet has instances in, whoever declared them."""
    seen = set()
    for scope_id in arm.control.views.ids():
        owner, group, _ = scope_id.split("/", 2)
        if owner == subscription and group not in seen:
            seen.add(group)
            yield group
