"""A list of resources as an answer, a page at a time.

To find a page of many thousand resources takes long, so it is done in slices.
"""

import asyncio
import heapq
from collections.abc import Iterable

from fairwarning.control.arm.call import ArmCall, Json, Reply
from fairwarning.control.arm.paging import page, page_items, place_of, start_of

SLICE = 200
"""So many resources are looked at before others have their turn."""


async def listed(call: ArmCall, resources: Iterable[Json]) -> Reply:
    """Raises ArmError."""
    after, most = start_of(call), page_items(call) + 1
    found = []
    for number, each in enumerate(resources):
        place = place_of(each["id"])
        if place > after:
            found.append((place, number, each))
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    nearest = heapq.nsmallest(most, found)
    return Reply(200, page(call, [each for _, _, each in nearest]))
