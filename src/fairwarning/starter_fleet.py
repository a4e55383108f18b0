"""The starter fleet is the fleet of an empty store: one resource of each kind, to try things."""

from fairwarning.core import resources
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.resources import Resource

_PLACE = resources.Place(test=True, origin="starter")
STARTER_FLEET: tuple[Resource, ...] = (
    resources.VirtualMachine(name="db", place=_PLACE),
    resources.AvailabilitySet(
        name="web",
        update_domains=3,
        members=tuple(resources.Member(name=f"web-{number}") for number in range(3)),
        place=_PLACE,
    ),
    resources.ScaleSet(name="workers", capacity=2, terminate_notice_ms=5 * MINUTE_MS, place=_PLACE),
    resources.CloudService(name="shop", roles={"FrontEnd": 2, "BackEnd": 1}, place=_PLACE),
)
