"""The reader's time zone. The browser says it in a cookie; without one, times are in UTC."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

ZONE = "fairwarning-zone"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")


def zone_of(name: str | None) -> ZoneInfo:
    """UTC for a name that is missing or unknown: it comes from outside."""
    if name and len(name) <= 64 and _NAME.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            pass
    return ZoneInfo("UTC")


def local(text: str, zone: ZoneInfo) -> str:
    """`Mon 16 Nov 2026, 10:30 CET`: for sentences, where no markup can be."""
    return datetime.fromisoformat(text).astimezone(zone).strftime("%a %d %b %Y, %H:%M:%S %Z")


def rfc3339_of(text: str, zone: ZoneInfo) -> str | None:
    """What a field for date and time holds (`2026-11-16T10:30`) as an instant; None: it is none."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    placed = read.replace(tzinfo=zone) if read.tzinfo is None else read
    return placed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
