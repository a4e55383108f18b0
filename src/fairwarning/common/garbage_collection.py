"""This module keeps garbage collection from delaying polls, and from slowing down a start.

A full collection visits every object. With 10,000 instances that takes 100 ms, and no poll is
answered during this time. A fleet has no reference cycles, so it is freed without collections.
Therefore all objects are frozen after a long collection, which makes the next one short. Frozen
cycles that become garbage stay until twice as many objects are frozen; then one collection visits
all objects again.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LONG_S = 0.02  # A poll that waits longer for its answer is noticed.


class ShortCollections:
    """Freezes objects after long collections, from `begin` to `end`.

    The callback must not raise, because the collector calls it in the middle of other code.
    """

    def __init__(self) -> None:
        self._began_s = 0.0
        self._is_whole = False
        """Whether the current collection visits frozen objects too."""
        self._frozen_max = 0

    def begin(self) -> None:
        """Freeze all current objects, and start to watch collections."""
        gc.collect()
        gc.freeze()
        self._frozen_max = 2 * gc.get_freeze_count()
        gc.callbacks.append(self._on_collection)

    def end(self) -> None:
        gc.callbacks.remove(self._on_collection)
        gc.unfreeze()

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] != 2:
            return
        if phase == "start":
            self._is_whole = gc.get_freeze_count() > self._frozen_max
            if self._is_whole:
                gc.unfreeze()
            self._began_s = time.thread_time()
        elif self._is_whole or time.thread_time() - self._began_s > LONG_S:
            gc.freeze()
            if self._is_whole:
                self._frozen_max = 2 * gc.get_freeze_count()


@contextmanager
def paused_collections() -> Iterator[None]:
    """Make no collections in the `with` block.

    A collection visits all objects, and the more there are, the longer it takes. Loading a fleet
    of 100,000 instances would spend half of its time on collections that free nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
