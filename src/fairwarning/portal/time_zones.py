"""Converts times to the reader's zone, which the browser sends in a cookie (default UTC)."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

ZONE = "fairwarning-zone"
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")


def zone_of(name: str | None) -> ZoneInfo:
    """Return the zone of this name. It is UTC if the name is missing or unknown."""
    if name and len(name) <= 64 and _NAME.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            pass
    return ZoneInfo("UTC")


def local(text: str, zone: ZoneInfo) -> str:
    """Return text like `Mon 16 Nov 2026, 10:30 CET`, for sentences without markup."""
    return datetime.fromisoformat(text).astimezone(zone).strftime("%a %d %b %Y, %H:%M:%S %Z")


def with_local_times(text: str, zone: ZoneInfo) -> str:
    """Return a sentence of the journal with its UTC times in the reader's zone."""
    return _UTC_TIME.sub(lambda found: local(found[0].replace(" UTC", "Z"), zone), text)


def rfc3339_of(text: str, zone: ZoneInfo) -> str | None:
    """Return the RFC 3339 time of a form field like `2026-11-16T10:30`, or None if invalid."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    placed = read.replace(tzinfo=zone) if read.tzinfo is None else read
    return placed.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
