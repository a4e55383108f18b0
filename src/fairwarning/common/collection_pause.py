"""Pauses the garbage collector while very many objects are made that have no reference cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
