"""Keeps garbage collection from delaying polls.

A full collection visits every object: with 10,000 instances that takes 100 ms, in which no poll
is answered. A fleet has no cycles and is freed without it. So after a long collection all objects
are frozen, and the next one is short. Frozen cycles that become garbage stay until there are
twice as many objects; then everything is visited once more.
"""

import gc
import time
from typing import Any

LONG_S = 0.02


class ShortCollections:
    """Freezes objects after long collections. Its callback must not raise in foreign code."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._is_whole = False
        """Whether the current collection visits frozen objects too."""
        self._frozen_max = 0

    def begin(self) -> None:
        """Freeze what exists now, and watch collections from here on."""
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
