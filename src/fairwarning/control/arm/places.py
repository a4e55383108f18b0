"""Which subscriptions and resource groups there are, and how they are spelled."""

from collections.abc import Iterator

from fairwarning.control.arm.call import Arm
from fairwarning.control.arm.errors import ArmError
from fairwarning.core.fleet import DEFAULT_SUBSCRIPTION


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


async def group_spelled(arm: Arm, subscription: str, group: str) -> str | None:
    """As the group itself is spelled; None if there is none."""
    kept = await arm.shelf.find(f"/subscriptions/{subscription}/resourceGroups/{group}")
    if kept is not None:
        return kept.name
    wanted = group.lower()
    return next((g for g in fleet_groups(arm, subscription) if g.lower() == wanted), None)


def group_not_found(group: str) -> ArmError:
    return ArmError(404, "ResourceGroupNotFound", f"Resource group '{group}' could not be found.")
