"""Parses and formats times and durations for people, with the current time as a parameter.

The current time is always that of the server's clock.
"""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from fairwarning.common import durations
from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS_MS = (DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS)
_NAMES = ("d", "h", "min", "s")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)


class NotATime(ValueError):
    """The text is not a duration or a time. The message says how to write one."""


def parse_duration_ms(text: str) -> int:
    """Return the duration in milliseconds. Raises `NotATime` if the text is no duration."""
    found = durations.parse_duration_ms(text)
    if found is None:
        raise NotATime(f"{text!r} is no duration; write one like {durations.DURATION_EXAMPLES}")
    return found


def duration_text(text: str) -> str:
    """Convert a duration to ISO 8601, as the API needs it. Raises `NotATime`."""
    return durations.format_iso_duration(parse_duration_ms(text))


def parse_time(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Parse RFC 3339, local time without an offset, or `22:00`, which means the next 22:00.

    `zone` None is the local zone. Raises `NotATime` if the text is none of these.
    """
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return _next(time(int(clock[1]), int(clock[2])), now, zone)
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else _local(found, zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise NotATime(
            f"{text!r} is no time; write one like 22:00, 2026-11-16T22:00 (local time) or "
            "2026-11-16T22:00:00Z"
        ) from None


def _next(at: time, now: datetime, zone: tzinfo | None) -> datetime:
    today = now.astimezone(zone).date()
    days = (today, today + timedelta(days=1), today + timedelta(days=2))
    candidates = (_local(datetime.combine(day, at), zone).astimezone(UTC) for day in days)
    return next(each for each in candidates if each > now)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    """Add `zone` to a time that has no zone. None means the local zone."""
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)


def from_wire(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def to_wire(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absolute(instant: datetime, zone: tzinfo | None = None) -> str:
    """Return the time in the zone (None is the local one), such as `2026-11-16 22:30:05 CET`."""
    local = instant.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname() or local.strftime('%z')}"


def relative(instant: datetime, now: datetime) -> str:
    """Return the time relative to `now`, such as `in 14 min`, `3 h ago` or `now`."""
    away_ms = round((instant - now) / timedelta(milliseconds=1))
    if abs(away_ms) < SECOND_MS:
        return "now"
    how_long = human_duration(abs(away_ms))
    return f"in {how_long}" if away_ms > 0 else f"{how_long} ago"


def human_duration(length_ms: int) -> str:
    """Return the duration in words, such as `14 min` or `2 h 5 min`.

    A second unit is shown only if the number of the first is below 10.
    """
    rest = length_ms
    counts = []
    for unit in _UNITS_MS:
        count, rest = divmod(rest, unit)
        counts.append(count)
    first = next((n for n, count in enumerate(counts) if count), len(counts) - 1)
    shown = [f"{counts[first]} {_NAMES[first]}"]
    if counts[first] < 10 and first + 1 < len(counts) and counts[first + 1]:
        shown.append(f"{counts[first + 1]} {_NAMES[first + 1]}")
    return " ".join(shown)


def countdown(instant: datetime, now: datetime) -> str:
    """Return the time left until `instant`, such as `14:05`, `1:02:09` or `due`."""
    left_s = -((now - instant) // timedelta(seconds=1))
    if left_s <= 0:
        return "due"
    hours, rest = divmod(left_s, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
