"""The starter fleet is what a first start finds: one resource of each kind, for rehearsing."""

from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Member,
    Place,
    Resource,
    ScaleSet,
    VirtualMachine,
)

_PLACE = Place(test=True, origin="starter")
STARTER_FLEET: tuple[Resource, ...] = (
    VirtualMachine(name="db", place=_PLACE),
    AvailabilitySet(
        name="web",
        update_domains=3,
        members=tuple(Member(name=f"web-{number}") for number in range(3)),
        place=_PLACE,
    ),
    ScaleSet(name="workers", capacity=2, terminate_notice_ms=5 * MINUTE_MS, place=_PLACE),
    CloudService(name="shop", roles={"FrontEnd": 2, "BackEnd": 1}, place=_PLACE),
)
