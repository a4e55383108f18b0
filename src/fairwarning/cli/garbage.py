"""Keeps the collection of garbage from holding up polls.

A full collection looks at every object that there is: with 10,000 instances that takes 100 ms, in
which nobody is answered. But a fleet has no cycles and is freed without it. So whatever is there
when a full collection took long is not looked at again, and the next one is short. What of that
becomes garbage in a cycle stays until there is twice as much; then all is looked at once more.
"""

import gc
import time
from typing import Any

LONG_S = 0.02


class ShortCollections:
    """Raises nothing: it is called in the middle of whatever made an object."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._is_whole = False
        """The collection under way looks at everything."""
        self._frozen_max = 0

    def begin(self) -> None:
        """What is there now is there for good."""
        gc.collect()
        gc.freeze()
        self._frozen_max = 2 * gc.get_freeze_count()
        gc.callbacks.append(self._hear)

    def end(self) -> None:
        gc.callbacks.remove(self._hear)
        gc.unfreeze()

    def _hear(self, phase: str, info: dict[str, Any]) -> None:
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
