"""Puts the tests that take long where each worker begins with some of them."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def long_first(long: Sequence[T], short: Sequence[T], workers: int) -> list[T]:
    """Returns all of them so that each worker's share begins with its share of the long ones.

    `--dist worksteal` gives each worker an equal part of the list, one after the other. What is
    left over goes to the last workers.
    """
    parts = [[*long[number::workers]] for number in range(workers)]
    left, begins = len(long) + len(short), 0
    for number, part in enumerate(parts):
        size = left // (workers - number)
        ends = begins + max(0, size - len(part))
        part.extend(short[begins:ends])
        begins, left = ends, left - size
    return [each for part in parts for each in part] + [*short[begins:]]
