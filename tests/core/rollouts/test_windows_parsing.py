"""Windows and blackouts as people write them, and the sentences for what they write wrong."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import Blackout, Window
from fairwarning.core.rollouts.windows import make_window, parse_blackout, parse_window


@pytest.mark.parametrize(
    ("text", "days", "opens", "closes"),
    [
        ("mon-fri 22:00-04:00", (0, 1, 2, 3, 4), "22:00", "04:00"),
        ("Sat,Sun 08:00-20:30", (5, 6), "08:00", "20:30"),
        ("fri-mon 01:00-05:00", (0, 4, 5, 6), "01:00", "05:00"),
        ("daily 00:00-24:00", (0, 1, 2, 3, 4, 5, 6), "00:00", "24:00"),
        ("23:00-00:00", (0, 1, 2, 3, 4, 5, 6), "23:00", "00:00"),
        ("tue-tue 22:00-23:00", (1,), "22:00", "23:00"),
        ("sun-sat 22:00-23:00", (0, 1, 2, 3, 4, 5, 6), "22:00", "23:00"),
        (" mon, wed  10:00-11:00 ", (0, 2), "10:00", "11:00"),
    ],
)
def test_a_window_is_read(text: str, days: tuple[int, ...], opens: str, closes: str) -> None:
    window = parse_window(text)
    assert (window.days, window.opens, window.closes) == (days, opens, closes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("whenever", "write one like 'mon-fri 22:00-04:00'"),
        ("mon 22:00-22:00", "is empty; write 00:00-24:00"),
        ("mon 25:00-26:00", "'25:00' is no time of day"),
        ("mon 24:00-02:00", "cannot open at 24:00"),
        ("mon 9:00-10:00", "'9:00' is no time of day"),
        ("moon 22:00-23:00", "'moon' is no day"),
        ("mon-fry 22:00-23:00", "'fry' is no day"),
        ("", "is no window"),
    ],
)
def test_a_window_that_is_none_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_window(text)
    assert refused.value.code is Code.ROLLOUT_INVALID
    assert says in refused.value.message


windows = st.builds(
    Window,
    days=st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    from_minute=st.integers(0, 1439),
    to_minute=st.integers(0, 1440),
).filter(lambda window: window.from_minute != window.to_minute)


@given(windows)
def test_what_a_window_says_is_read_back_equal(window: Window) -> None:
    assert parse_window(str(window)) == window
    assert make_window(window.day_names, window.opens, window.closes) == window


def test_a_blackout_is_a_day_or_a_range_of_days() -> None:
    day = date(2026, 12, 24)
    assert parse_blackout("2026-12-24") == Blackout(first=day, last=day)
    assert str(parse_blackout("2026-12-24/2026-12-26")) == "2026-12-24/2026-12-26"
    assert str(parse_blackout("2026-12-24")) == "2026-12-24"


@pytest.mark.parametrize(
    "text", ["", "24.12.2026", "2026-13-01", "2026-12-24/", "2026-12-26/2026-12-24"]
)
def test_a_blackout_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_blackout(text)
    assert refused.value.code is Code.ROLLOUT_INVALID
