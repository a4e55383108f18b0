"""When a calendar is open: night shifts, blackouts, and the days on which clocks are moved."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, Instant
from fairwarning.core.rollouts.model import Blackout, Calendar, Window
from fairwarning.core.rollouts.windows import (
    closes,
    is_open,
    next_opening,
    open_periods,
    parse_blackout,
    parse_window,
)
from tests.core.rollouts.test_windows_parsing import windows

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia",
         "America/Havana", "Asia/Kathmandu", "Africa/Casablanca")  # fmt: skip


def at(text: str) -> Instant:
    return Instant(round(datetime.fromisoformat(text).timestamp() * 1000))


def show(instant: Instant | None) -> str | None:
    if instant is None:
        return None
    return f"{datetime.fromtimestamp(instant / 1000, UTC):%Y-%m-%dT%H:%MZ}"


def calendar(*texts: str, zone: str = "UTC", black: tuple[str, ...] = ()) -> Calendar:
    return Calendar(
        windows=tuple(parse_window(text) for text in texts),
        time_zone=zone,
        blackouts=tuple(parse_blackout(text) for text in black),
    )


def first_two(chosen: Calendar, begin: str) -> list[tuple[str | None, str | None]]:
    found = open_periods(chosen, at(begin))
    return [(show(begin), show(end)) for begin, end in (next(found), next(found))]


def test_a_night_that_begins_on_friday_ends_on_saturday() -> None:
    nights = calendar("fri 22:00-04:00")
    assert is_open(nights, at("2026-11-20T22:00Z"))  # A Friday.
    assert is_open(nights, at("2026-11-21T03:59:59.999Z"))
    assert not is_open(nights, at("2026-11-21T04:00Z"))
    assert not is_open(nights, at("2026-11-20T03:00Z"))
    assert not is_open(nights, at("2026-11-21T22:00Z"))


def test_a_night_that_begins_on_sunday_ends_on_monday() -> None:
    nights = calendar("sun 22:00-04:00")
    assert is_open(nights, at("2026-11-23T03:59Z"))  # A Monday.
    assert not is_open(nights, at("2026-11-22T03:59Z"))


def test_windows_that_touch_are_one() -> None:
    chosen = calendar("mon 20:00-24:00", "tue 00:00-04:00")
    assert first_two(chosen, "2026-11-16T12:00Z")[0] == ("2026-11-16T20:00Z", "2026-11-17T04:00Z")


def test_a_blackout_is_a_day_of_the_time_zone() -> None:
    chosen = calendar(zone="Asia/Kathmandu", black=("2026-12-24/2026-12-25",))
    assert closes(chosen, at("2026-12-01T00:00Z")) == at("2026-12-23T18:15Z")
    assert next_opening(chosen, at("2026-12-24T00:00Z"), 0) == at("2026-12-25T18:15Z")


def test_a_blackout_ends_a_night_at_midnight() -> None:
    chosen = calendar("daily 22:00-04:00", black=("2026-12-24",))
    assert first_two(chosen, "2026-12-23T12:00Z") == [
        ("2026-12-23T22:00Z", "2026-12-24T00:00Z"),
        ("2026-12-25T00:00Z", "2026-12-25T04:00Z"),
    ]


@pytest.mark.parametrize(
    ("text", "open_hours"),
    [("daily 01:00-04:00", 2), ("daily 01:00-02:30", 1), ("daily 02:15-02:45", 0)],
)
def test_in_spring_the_hour_that_the_wall_clock_skips_is_not_there(
    text: str, open_hours: int
) -> None:
    """Berlin, 2026-03-29: after 01:59:59 comes 03:00:00."""
    chosen = calendar(text, zone="Europe/Berlin")
    day = at("2026-03-28T23:00Z")
    minutes = sum(is_open(chosen, Instant(day + n * MINUTE_MS)) for n in range(23 * 60))
    assert minutes == open_hours * 60
    assert _minutes_of_stretches(chosen, day, 23 * 60) == minutes


def test_in_autumn_the_hour_that_the_wall_clock_shows_twice_is_open_twice() -> None:
    """Berlin, 2026-10-25: after 02:59:59 comes 02:00:00 once more."""
    chosen = calendar("sun 01:30-02:30", zone="Europe/Berlin")
    assert first_two(chosen, "2026-10-24T22:00Z") == [
        ("2026-10-24T23:30Z", "2026-10-25T00:30Z"),
        ("2026-10-25T01:00Z", "2026-10-25T01:30Z"),
    ]


def test_the_same_night_is_an_hour_longer_in_autumn_and_shorter_in_spring() -> None:
    chosen = calendar("sat 22:00-06:00", zone="Europe/Berlin")
    lengths = {}
    for day in ("2026-03-21", "2026-03-28", "2026-10-24"):
        begin, end = next(open_periods(chosen, at(f"{day}T12:00Z")))
        assert end is not None
        lengths[day] = (end - begin) // HOUR_MS
    assert lengths == {"2026-03-21": 8, "2026-03-28": 7, "2026-10-24": 9}


def test_room_is_sought_in_one_uninterrupted_stretch() -> None:
    chosen = calendar("daily 22:00-23:00", "sun 02:00-06:00")
    friday = at("2026-11-20T22:30Z")
    assert next_opening(chosen, friday, 29 * MINUTE_MS) == friday
    assert show(next_opening(chosen, friday, 30 * MINUTE_MS)) == "2026-11-21T22:00Z"
    assert show(next_opening(chosen, friday, 2 * HOUR_MS)) == "2026-11-22T02:00Z"
    assert next_opening(chosen, friday, 4 * HOUR_MS) is None


def test_a_stretch_that_reaches_beyond_what_is_looked_at_has_no_room_there() -> None:
    """An opening that is cut off by the horizon may close right behind it."""
    chosen = calendar(black=("2026-11-21/2027-12-24", "2027-12-26"))
    now = at("2026-11-21T00:00Z")
    assert show(next_opening(chosen, now, 12 * HOUR_MS)) == "2027-12-25T00:00Z"
    assert next_opening(chosen, now, 36 * HOUR_MS) is None


def test_without_windows_and_blackouts_it_is_always_open() -> None:
    now = at("2026-11-20T22:30Z")
    assert next_opening(Calendar(), now, 10**15) == now
    assert closes(Calendar(), now) is None


blackouts = st.builds(
    lambda first, length: Blackout(first=first, last=first + timedelta(days=length)),
    st.dates(date(2026, 3, 20), date(2026, 11, 10)),
    st.integers(0, 3),
)

calendars = st.builds(
    Calendar,
    windows=st.lists(windows, max_size=3).map(tuple),
    time_zone=st.sampled_from(ZONES),
    blackouts=st.lists(blackouts, max_size=3).map(tuple),
)
BEGINNINGS = [at(text) for text in ("2026-03-07T00:00Z", "2026-03-28T00:00Z", "2026-04-04T00:00Z",
                                    "2026-10-03T00:00Z", "2026-10-24T00:00Z", "2026-10-31T00:00Z",
                                    "2011-12-29T00:00Z", "2010-11-06T00:00Z")]  # fmt: skip


def _minutes_of_stretches(chosen: Calendar, begin: Instant, minutes: int) -> int:
    end = begin + minutes * MINUTE_MS
    total = 0
    for opens, shuts in open_periods(chosen, begin):
        if opens >= end:
            break
        total += (min(end if shuts is None else shuts, end) - opens) // MINUTE_MS
    return total


@given(calendars, st.sampled_from(BEGINNINGS), st.integers(0, 36 * 60))
@example(calendar("daily 23:00-00:30", zone="America/St_Johns"), at("2010-11-07T00:00Z"), 0)
@example(
    Calendar(windows=(Window(days=(4,), from_minute=0, to_minute=1440),), time_zone="Pacific/Apia"),
    at("2011-12-29T00:00Z"),
    0,
)
def test_stretches_are_what_the_wall_clock_shows_minute_by_minute(
    chosen: Calendar, begin: Instant, shift: int
) -> None:
    """Around every change of the clocks, against the plain definition."""
    first = Instant(begin + shift * MINUTE_MS)
    span = 48 * 60
    shown = [is_open(chosen, Instant(first + n * MINUTE_MS)) for n in range(span)]
    found = [False] * span
    for opens, shuts in open_periods(chosen, first):
        if opens >= first + span * MINUTE_MS:
            break
        last = span if shuts is None else min((shuts - first) // MINUTE_MS, span)
        for n in range((opens - first) // MINUTE_MS, last):
            found[n] = True
    assert found == shown


@given(calendars, st.sampled_from(BEGINNINGS), st.integers(0, 36 * 60), st.integers(0, 600))
def test_an_opening_has_the_room_that_was_asked_for(
    chosen: Calendar, begin: Instant, shift: int, needed: int
) -> None:
    now = Instant(begin + shift * MINUTE_MS + 1)
    found = next_opening(chosen, now, needed * MINUTE_MS)
    if found is None:
        return
    assert found >= now
    assert all(is_open(chosen, Instant(found + n * MINUTE_MS)) for n in range(needed + 1))
