"""Durations and instants as people write them: `30s`, `15m`, `2h`, `PT15M`, RFC 3339."""

import re
from datetime import UTC, datetime, timedelta

from fairwarning.core.instants import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    Instant,
    parse_iso_duration_ms,
)

END = r"$(?!\n)"
"""The very end of a text: Python's `$` alone fits before a last newline too. OpenAPI's patterns are
those of JavaScript, which has no `\\Z`, and there this means the same."""
DURATION_PATTERN = (
    r"^([0-9]{1,6}[smhd]|P([0-9]{1,6}D)?(T([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}S)?)?)" + END
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_MS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_SHORT = re.compile(r"([0-9]{1,6})([smhd])")


def parse_duration_ms(text: str) -> int | None:
    """None if it is no duration. Upper case is ISO 8601, lower case is ours."""
    short = _SHORT.fullmatch(text)
    if short is not None:
        return int(short[1]) * _UNITS_MS[short[2]]
    return parse_iso_duration_ms(text)


def parse_instant(text: str) -> Instant | None:
    """RFC 3339 with a zone; None if it is none, because a guess could be hours off."""
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
