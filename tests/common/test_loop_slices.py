"""Long work on the event loop lets other work run in between."""

import asyncio

from fairwarning.common.loop_slices import CHEAP_ITEMS, SLICE_ITEMS, filter_in_slices, map_in_slices
from tests.support.loop_turns import turns_beside


async def test_the_results_come_in_the_order_of_the_items() -> None:
    items = range(3 * SLICE_ITEMS + 1)
    assert await map_in_slices(str, items) == [str(each) for each in items]
    assert await map_in_slices(str, []) == []


async def test_other_work_runs_after_each_slice() -> None:
    seen: list[int] = []
    slices = 4
    turns = await turns_beside(map_in_slices(seen.append, range(slices * SLICE_ITEMS)))
    assert turns >= slices
    assert len(seen) == slices * SLICE_ITEMS


async def test_a_short_list_costs_no_turn_of_the_loop() -> None:
    async def short() -> list[str]:
        task = asyncio.create_task(asyncio.sleep(0))
        found = await map_in_slices(str, range(SLICE_ITEMS - 1))
        assert not task.done()
        await task
        return found

    assert len(await short()) == SLICE_ITEMS - 1


async def test_a_filter_keeps_the_order_and_lets_other_work_run() -> None:
    async def odd() -> None:
        found = await filter_in_slices(lambda each: each % 2 == 1, range(3 * CHEAP_ITEMS + 4))
        assert found == list(range(1, 3 * CHEAP_ITEMS + 4, 2))

    assert await turns_beside(odd()) >= 3
    assert await filter_in_slices(bool, []) == []
