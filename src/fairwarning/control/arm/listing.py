"""A list of resources as an answer, a page at a time. Pure."""

from collections.abc import Iterable

from fairwarning.control.arm.call import ArmCall, Json, Reply
from fairwarning.control.arm.paging import page


def listed(call: ArmCall, resources: Iterable[Json]) -> Reply:
    return Reply(200, page(call, resources))
