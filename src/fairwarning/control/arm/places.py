"""Which subscriptions and resource groups there are, and how they are spelled."""

from collections.abc import Iterator

from fairwarning.control.arm.call import Arm
from fairwarning.control.arm.errors import ArmError
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION


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
