"""The core counts time in integer milliseconds, UTC.

An `Instant` becomes text only at the wire and on the screen. Durations are plain integers whose
unit is in their name (`notice_ms`, `duration_s`); their text is in `common/durations.py`.
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
    """The instant rounded up: the wire shows whole seconds, and what is shown must not be early."""
    return Instant(-(-instant // SECOND_MS) * SECOND_MS)


def parse_instant(text: str) -> Instant | None:
    """An RFC 3339 time with a zone; None for any other text, because a guess could be hours off."""
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
    """`Thu, 22 Jul 2021 04:50:17 GMT`, the form of NotBefore on the wire."""
    return format_datetime(to_datetime(instant).replace(microsecond=0), usegmt=True)


def format_rfc3339(instant: Instant) -> str:
    """`2021-07-22T04:50:17.123Z`, the form of our own interfaces."""
    return to_datetime(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")
