"""Parts long work on the event loop into slices, so that no poll waits for all of it."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
# The largest usual item is a scope of 100 instances. It takes 0.5 ms to decode, so a slice takes
# 5 ms. The slice is counted and not timed, so that the simulation always takes the same path.
SLICE_ITEMS = 10
CHEAP_ITEMS = 5_000
"""The items of a slice if each takes less than a microsecond, such as a search in one name."""


async def map_in_slices(function: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """Return the function's result for each item. Other work of the loop runs after each slice."""
    results: list[U] = []
    for item in items:
        results.append(function(item))
        if len(results) % SLICE_ITEMS == 0:
            await asyncio.sleep(0)
    return results


async def filter_in_slices(keeps: Callable[[T], bool], items: Iterable[T]) -> list[T]:
    """Return the items that a cheap function keeps. Other work of the loop runs in between."""
    kept: list[T] = []
    rest = iter(items)
    while part := list(islice(rest, CHEAP_ITEMS)):
        kept += [item for item in part if keeps(item)]
        if len(part) == CHEAP_ITEMS:
            await asyncio.sleep(0)
    return kept
