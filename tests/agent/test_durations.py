"""Times as people read them."""

import pytest

from fairwarning.agent.durations import human_s


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (7.9, "7 s"),
        (60, "1 min"),
        (3_900, "1 h 5 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_time_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert human_s(seconds) == text
