"""Time as the core sees it: integer milliseconds, UTC.

An `Instant` becomes text only at the wire and on the screen. Durations are plain
integers whose unit is in their name (`notice_ms`, `duration_s`).
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NewType

Instant = NewType("Instant", int)

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_ISO_DURATION = re.compile(
    r"P(?!$)(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?!$)(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,6})M)?(?:(?P<seconds>\d{1,6})S)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def later(instant: Instant, by_ms: int) -> Instant:
    return Instant(instant + by_ms)


def to_whole_second(instant: Instant) -> Instant:
    """Rounded up: the wire shows whole seconds, and what is shown must not be early."""
    return Instant(-(-instant // SECOND_MS) * SECOND_MS)


def parse_iso_duration_ms(text: str) -> int | None:
    """`PT5M` as milliseconds, or None if the text is no ISO 8601 duration.

    Years and months are left out: they have no fixed length.
    """
    match = _ISO_DURATION.fullmatch(text)
    if match is None:
        return None
    parts = {unit: int(digits) for unit, digits in match.groupdict(default="0").items()}
    return (
        parts["days"] * DAY_MS
        + parts["hours"] * HOUR_MS
        + parts["minutes"] * MINUTE_MS
        + parts["seconds"] * SECOND_MS
    )


def format_iso_duration(duration_ms: int) -> str:
    """The shortest `PT…` form; whole seconds, rounded up so that no promise shrinks."""
    seconds = -(-duration_ms // SECOND_MS)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    text = "".join(
        f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if count
    )
    return f"PT{text or '0S'}"


def to_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def format_rfc1123(instant: Instant) -> str:
    """`Thu, 22 Jul 2021 04:50:17 GMT`, the form of NotBefore on the wire."""
    return format_datetime(to_datetime(instant).replace(microsecond=0), usegmt=True)


def format_rfc3339(instant: Instant) -> str:
    """`2021-07-22T04:50:17.123Z`, the form of our own interfaces."""
    return to_datetime(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")
