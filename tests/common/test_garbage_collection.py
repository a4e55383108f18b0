"""Full collections of garbage stay short and lose nothing for good, and a block can pause them."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from fairwarning.common import garbage_collection
from fairwarning.common.garbage_collection import ShortCollections, paused_collections


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
    monkeypatch.setattr(garbage_collection, "LONG_S", 0.0)
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)


def test_once_there_is_twice_as_much_all_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, collections: ShortCollections
) -> None:
    monkeypatch.setattr(garbage_collection, "LONG_S", 0.0)
    knot = Knot()
    gone = weakref.ref(knot)
    gc.collect()
    del knot
    gc.collect()
    assert gone() is not None
    monkeypatch.setattr(collections, "_frozen_max", 0)
    gc.collect()
    assert gone() is None


def test_nothing_is_collected_in_the_block_and_the_collector_resumes() -> None:
    with paused_collections():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_resumes_after_a_failure() -> None:
    with pytest.raises(ValueError, match="broke"), paused_collections():
        raise ValueError("broke")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
