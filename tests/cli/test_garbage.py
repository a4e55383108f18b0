"""Full collections of garbage stay short, and nothing is lost for good by that."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from fairwarning.cli import garbage
from fairwarning.cli.garbage import ShortCollections


class Knot:
    """Garbage that only a collection frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collections() -> Iterator[ShortCollections]:
    found = ShortCollections()
    found.begin()
    yield found
    found.end()


@pytest.mark.usefixtures("collections")
def test_what_a_long_collection_looked_at_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = gc.get_freeze_count()
    assert before > 10_000
    kept = [Knot() for _ in range(1_000)]
    gc.collect()
    assert gc.get_freeze_count() <= before, "a short one is looked at again"
    monkeypatch.setattr(garbage, "LONG_S", 0.0)
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)


def test_once_there_is_twice_as_much_all_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, collections: ShortCollections
) -> None:
    monkeypatch.setattr(garbage, "LONG_S", 0.0)
    knot = Knot()
    gone = weakref.ref(knot)
    gc.collect()
    del knot
    gc.collect()
    assert gone() is not None
    monkeypatch.setattr(collections, "_frozen_max", 0)
    gc.collect()
    assert gone() is None
