"""An availability set as it stands: its scope, and what its owner said of it.

Scopes stay when their last instance goes, so an empty one is a set only as long as
somebody keeps it.
"""

from typing import NamedTuple

from fairwarning.control.arm.call import Arm
from fairwarning.control.arm.fleet import scopes_of
from fairwarning.control.arm.paths import resource_id
from fairwarning.control.arm.shelf import Kept
from fairwarning.core.model import Scope, ScopeKind

TYPE = "Microsoft.Compute/availabilitySets"


class StandingSet(NamedTuple):
    scope: Scope
    kept: Kept | None


async def standing_set(arm: Arm, subscription: str, group: str, name: str) -> StandingSet | None:
    kept = await arm.shelf.find(resource_id(subscription, group, TYPE, name))
    spelled = name if kept is None else kept.name
    scopes = await scopes_of(arm, ScopeKind.AVAILABILITY_SET, subscription, group, spelled)
    if not scopes or (kept is None and not scopes[0].roster.live):
        return None
    return StandingSet(scopes[0], kept)
