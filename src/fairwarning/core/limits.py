"""A limit on everything that a caller can make grow, and the times of the engine."""

from dataclasses import dataclass

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

SCOPE_INSTANCES_MAX = 100
"""A placement group holds no more (Azure's limit)."""
FLEXIBLE_NAME_CHARS_MAX = 44
"""Of an instance that a flexible scale set has made (Azure's limit); other names have up to 64."""
FLEXIBLE_SET_CHARS_MAX = FLEXIBLE_NAME_CHARS_MAX - len("_12345678")
SCOPE_EVENTS_MAX = 1_000
FINISHED_KEPT_MAX = 4
"""So many of the last events stay in their scope; all others are in the store's history alone."""
DELETED_KEPT_MAX = 100
DESCRIPTION_CHARS_MAX = 1_024
EVENT_DURATION_S_MAX = 7 * 24 * 3600
NOT_BEFORE_AHEAD_MS_MAX = 366 * DAY_MS
INSTANCE_ADDRESSES_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The durations that the rules run on. An operator may set each."""

    idle_ms: int = 24 * HOUR_MS
    """Without a request for so long, a scope is switched off."""
    idle_grace_ms: int = 15 * MINUTE_MS
    """Requests are noted in the store no more often than this, so the switch waits that long."""
    retention_ms: int = DAY_MS
    """Finished events and deleted instances stay in their scope so long, if they are not many."""
    lease_ms: int = 30 * SECOND_MS
    """How long a node may be silent before another takes over its driver work."""
    attempt_ms: int = 30 * MINUTE_MS
    """How long one try of a driver may take, beyond the event's own duration."""
    attempts_max: int = 5
    """So many failures of the driver, and the event ends as failed."""
    handovers_max: int = 100
    """So many attempts in all, those that a dying node interrupted included."""
    backoff_ms: int = SECOND_MS
    backoff_ms_max: int = MINUTE_MS


DEFAULT_TIMING = Timing()
