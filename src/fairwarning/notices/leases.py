"""Who may tell a target now. Pure."""

from msgspec.structs import replace

from fairwarning.core.instants import MINUTE_MS, Instant, later
from fairwarning.notices.shelf import Cursor

LEASE_MS = MINUTE_MS
"""Longer than any single try takes."""


def is_free_for(node: str, cursor: Cursor, now: Instant) -> bool:
    """A lease that ends later than any lease can was written before the clock was set back."""
    left_ms = cursor.lease_until_ms - now
    return cursor.node in {"", node} or not 0 < left_ms <= 2 * LEASE_MS


def taken_by(node: str, cursor: Cursor, now: Instant) -> Cursor:
    return replace(cursor, node=node, lease_until_ms=later(now, LEASE_MS))


def released(cursor: Cursor) -> Cursor:
    return Cursor(position=cursor.position)


def needs_renewal(cursor: Cursor, now: Instant) -> bool:
    return cursor.lease_until_ms - now < LEASE_MS // 2
