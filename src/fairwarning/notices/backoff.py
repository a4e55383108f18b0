"""When to try again, and when to stop. Pure; the dice are thrown by the caller."""

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later

PAUSES_MS = (
    SECOND_MS,
    5 * SECOND_MS,
    30 * SECOND_MS,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
)
"""After the first failure, the second, and so on; behind the last one it is a dead letter."""
JITTER = 0.2


def next_try_ms(attempts: int, now: Instant, dice: float) -> Instant | None:
    """After so many failures; `dice` is in [0, 1). None: give up."""
    assert attempts >= 1
    if attempts > len(PAUSES_MS):
        return None
    spread = 1 + JITTER * (2 * dice - 1)
    return later(now, round(PAUSES_MS[attempts - 1] * spread))
