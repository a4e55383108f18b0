"""Decides when to retry, which entries a target wants, and which node may send. Pure."""

from msgspec.structs import replace

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import Event, ScopeId
from fairwarning.core.transitions import kind_of
from fairwarning.engine.protocols import Entry
from fairwarning.notifications.model import Filters
from fairwarning.notifications.records import Cursor

PAUSES_MS = (
    SECOND_MS,
    5 * SECOND_MS,
    30 * SECOND_MS,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
)
"""The pause after each failure; after the last one the message becomes a dead letter."""
JITTER = 0.2  # So that many messages are not tried again at the same moment.


def next_try_ms(attempts: int, now: Instant, random_number: float) -> Instant | None:
    """Return when to try again after `attempts` failures, or None. `random_number` is in [0, 1)."""
    assert attempts >= 1
    if attempts > len(PAUSES_MS):
        return None
    spread = 1 + JITTER * (2 * random_number - 1)
    return later(now, round(PAUSES_MS[attempts - 1] * spread))


def may_want(filters: Filters, entry: Entry) -> bool:
    """Return whether the filters accept the kind and scope. Then `wants` must check the event."""
    if kind_of(entry.transition) not in filters.kinds:
        return False
    return not filters.scopes or any(is_meant(entry.scope_id, name) for name in filters.scopes)


def wants(filters: Filters, event: Event | None) -> bool:
    """Return whether the filters accept the event. Filters by type or source never accept None."""
    if filters.types and (event is None or event.type not in filters.types):
        return False
    return not filters.sources or (event is not None and event.source in filters.sources)


def is_meant(id: ScopeId, name: str) -> bool:
    """Return whether `name` is the scope's id, the end of the id, or the scope's resource."""
    if id == name or id.endswith(f"/{name}"):
        return True
    whole, _, group = id.rpartition("/")
    return group.isdigit() and "/scale-set/" in id and whole.endswith(f"/{name}")


LEASE_MS = MINUTE_MS
"""How long a node's lease lasts: longer than any single try takes."""


def is_free_for(node: str, cursor: Cursor, now: Instant) -> bool:
    """Return whether `node` may take the cursor. A lease that ends too late is ignored: the clock
    was set back after it was written.
    """
    left_ms = cursor.lease_until_ms - now
    return cursor.node in {"", node} or not 0 < left_ms <= 2 * LEASE_MS


def taken_by(node: str, cursor: Cursor, now: Instant) -> Cursor:
    return replace(cursor, node=node, lease_until_ms=later(now, LEASE_MS))


def released(cursor: Cursor) -> Cursor:
    return Cursor(position=cursor.position)


def needs_renewal(cursor: Cursor, now: Instant) -> bool:
    return cursor.lease_until_ms - now < LEASE_MS // 2
