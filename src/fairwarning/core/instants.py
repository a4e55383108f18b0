"""The core counts time in integer milliseconds since 1970, in UTC.

An `Instant` becomes text only in protocols and on screens. Durations are plain integers whose names
end with the unit (`notice_ms`, `duration_s`); `common/durations.py` formats them.
"""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NewType

Instant = NewType("Instant", int)

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def later(instant: Instant, by_ms: int) -> Instant:
    return Instant(instant + by_ms)


def to_whole_second(instant: Instant) -> Instant:
    """Return the instant rounded up to a whole second, so that a shown time is never too early."""
    return Instant(-(-instant // SECOND_MS) * SECOND_MS)


def parse_instant(text: str) -> Instant | None:
    """Return the instant of an RFC 3339 time with a time zone, or None for any other text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is None:
        return None
    try:
        return Instant((found.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1))
    except OverflowError:
        return None


def to_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def format_rfc1123(instant: Instant) -> str:
    """Return the instant like `Thu, 22 Jul 2021 04:50:17 GMT`, the form of NotBefore."""
    return format_datetime(to_datetime(instant).replace(microsecond=0), usegmt=True)


def format_rfc3339(instant: Instant) -> str:
    """Return the instant like `2021-07-22T04:50:17.123Z`, the form of our own interfaces."""
    return to_datetime(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_optional(instant: Instant | None) -> str | None:
    """Return the instant as `format_rfc3339` does, or None if there is none."""
    return None if instant is None else format_rfc3339(instant)
