"""How soon a child that has ended is started again."""

import math

import pytest

from fairwarning.workers.children import PAUSE_S_MAX, Child, Tell


async def nothing(_: Tell) -> None:
    return


def test_a_child_that_ends_again_and_again_waits_longer_each_time_up_to_a_limit() -> None:
    child = Child(name="worker 1", main=nothing, started_s=math.inf)
    pauses = [child.ended() for _ in range(9)]
    assert pauses[:6] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    assert pauses[6:] == [PAUSE_S_MAX] * 3


def test_a_child_that_was_well_is_started_at_once_and_begins_with_a_short_pause() -> None:
    child = Child(name="worker 1", main=nothing, started_s=math.inf, pause_s=PAUSE_S_MAX)
    child.started_s = -math.inf
    assert child.ended() == 0
    child.started_s = math.inf
    assert child.ended() == pytest.approx(0.1)
