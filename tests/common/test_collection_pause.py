"""Collections are paused in the block, and resumed after it even if it fails."""

import gc

import pytest

from fairwarning.common.collection_pause import paused_collections


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
