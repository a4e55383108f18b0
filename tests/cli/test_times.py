"""Times as people read and write them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.cli.common_options import ServerClock
from fairwarning.cli.times import (
    NotATime,
    absolute,
    countdown,
    duration_text,
    from_wire,
    human_duration,
    parse_duration_ms,
    parse_time,
    relative,
    to_wire,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("30s", "PT30S"),
        ("15m", "PT15M"),
        ("1h30m", "PT1H30M"),
        ("1d", "PT24H"),
        ("PT15M", "PT15M"),
        ("0s", "PT0S"),
    ],
)
def test_durations_are_sent_as_iso_8601(text: str, sent: str) -> None:
    assert duration_text(text) == sent


@pytest.mark.parametrize("text", ["", "15", "m", "30m1h", "-5m", "1.5h", "1w", "P1M", "\u0661m"])
def test_what_is_no_duration_says_how_to_write_one(text: str) -> None:
    with pytest.raises(NotATime, match="write one like"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-16T22:00:00Z", datetime(2026, 11, 16, 22, tzinfo=UTC)),
        ("2026-11-16T22:00+02:00", datetime(2026, 11, 16, 20, tzinfo=UTC)),
        ("2026-11-16 22:00", datetime(2026, 11, 16, 21, tzinfo=UTC)),
        ("22:00", datetime(2026, 11, 16, 21, tzinfo=UTC)),
        ("9:30", datetime(2026, 11, 17, 8, 30, tzinfo=UTC)),
        ("13:00", datetime(2026, 11, 17, 12, tzinfo=UTC)),
    ],
)
def test_a_time_without_offset_is_local_and_one_without_a_day_is_the_next(
    text: str, instant: datetime
) -> None:
    assert parse_time(text, NOW, BERLIN) == instant


@pytest.mark.parametrize("text", ["", "tomorrow", "25:00", "2026-02-30", "9999-12-31T23:59-23:00"])
def test_what_is_no_time_says_how_to_write_one(text: str) -> None:
    with pytest.raises(NotATime, match="22:00"):
        parse_time(text, NOW, BERLIN)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)), st.times())  # noqa: DTZ001
def test_the_next_time_of_day_is_ahead_and_at_most_two_days_off(now: datetime, at: object) -> None:
    instant = now.replace(tzinfo=UTC)
    found = parse_time(str(at)[:5], instant, BERLIN)
    assert timedelta(0) < found - instant <= timedelta(days=2)


def test_the_machines_own_zone_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert absolute(NOW, BERLIN) == "2026-11-16 13:00:00 CET"
    assert absolute(NOW, ZoneInfo("Asia/Kolkata")) == "2026-11-16 17:30:00 IST"
    assert absolute(NOW).startswith(f"{NOW.astimezone():%Y-%m-%d %H:%M:%S}")


@pytest.mark.parametrize(
    ("away", "text"),
    [
        (timedelta(), "now"),
        (timedelta(milliseconds=-999), "now"),
        (timedelta(seconds=30), "in 30 s"),
        (timedelta(minutes=14, seconds=59), "in 14 min"),
        (timedelta(minutes=5, seconds=9), "in 5 min 9 s"),
        (timedelta(hours=-3), "3 h ago"),
        (timedelta(days=-2, hours=-4), "2 d 4 h ago"),
    ],
)
def test_relative_times(away: timedelta, text: str) -> None:
    assert relative(NOW + away, NOW) == text


@given(st.integers(0, 10**12))
def test_a_human_duration_never_promises_more_than_there_is(length_ms: int) -> None:
    units = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}
    words = human_duration(length_ms).split()
    pairs = zip(words[::2], words[1::2], strict=True)
    shown_ms = sum(int(count) * units[unit] for count, unit in pairs)
    assert shown_ms <= length_ms
    assert length_ms - shown_ms <= max(1000, length_ms * 0.1)


def test_a_countdown_ends_at_due_and_never_shows_zero_early() -> None:
    assert countdown(NOW + timedelta(hours=1, minutes=2, seconds=9), NOW) == "1:02:09"
    assert countdown(NOW + timedelta(milliseconds=1), NOW) == "0:01"
    assert countdown(NOW, NOW) == "due"


def test_the_wire_form_is_read_and_written() -> None:
    assert to_wire(from_wire("2026-11-16T09:30:00.123Z")) == "2026-11-16T09:30:00.123Z"


def test_a_real_clock_runs_between_answers_and_a_virtual_one_only_with_what_happens() -> None:
    passed = [0.0]
    face = {"now": "2026-11-16T12:00:00Z", "virtual": False}
    real = ServerClock(face, lambda: passed[0])
    virtual = ServerClock({**face, "virtual": True}, lambda: passed[0])
    passed[0] = 90
    assert real.now() == NOW + timedelta(seconds=90)
    assert virtual.now() == NOW
    virtual.saw(NOW + timedelta(hours=1))
    virtual.saw(NOW)
    assert virtual.now() == NOW + timedelta(hours=1)
