"""Checks that readers of the change feed get every entry once, in order.

If the store is set back, a reader goes on after the newest entry that is not lost. It may already
have received lost entries, and may still receive some that were under way.
"""

from collections.abc import Sequence

from fairwarning.engine.journal_reader import MARKS_MAX
from fairwarning.engine.protocols import Entry
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import FeedReader, demand
from fairwarning.simulation.world import World

_PROMISE = "the change feed"


class FeedChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read: dict[FeedReader, int] = {}
        self._lost: list[Entry] = []

    def step_back(self, kept: int, lost: Sequence[Entry]) -> None:
        """Adapts the readers to a store that was set back to its first `kept` journal entries."""
        self._lost += lost
        for reader in self._world.readers:
            if len(lost) >= MARKS_MAX:
                # The store lost more entries than a reader remembers, so the reader cannot go on.
                reader.leave()
            del reader.heard[max(kept - reader.begin, 0) :]
            reader.begin = min(reader.begin, kept)
            self._read[reader] = min(self._read.get(reader, 0), len(reader.heard))

    def check(self, seen: ObservedWorld) -> None:
        for reader in self._world.readers:
            if reader.is_over:
                continue
            error = reader.broken()
            demand(_PROMISE, error is None, lambda: f"it broke: {error!r}")  # noqa: B023
            self._compare(reader, seen)

    def check_at_end(self, seen: ObservedWorld) -> None:
        for reader in self._world.readers:
            if not reader.is_over:
                expected = len(seen.entries) - reader.begin
                heard = len(reader.heard)
                demand(_PROMISE, heard == expected, lambda: f"heard {heard} of {expected}")  # noqa: B023

    def _compare(self, reader: FeedReader, seen: ObservedWorld) -> None:
        number = self._read.get(reader, 0)
        while number < len(reader.heard):
            heard = reader.heard[number]
            place = reader.begin + number
            if place < len(seen.entries) and seen.entries[place] == heard:
                number += 1
                continue
            is_lost = heard in self._lost
            demand(_PROMISE, is_lost, lambda: f"entry {number} of {reader.node}: {heard}")  # noqa: B023
            del reader.heard[number]
        self._read[reader] = number
