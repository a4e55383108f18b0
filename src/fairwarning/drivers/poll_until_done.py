"""Waits for an impact that is already under way, by asking until it is over."""

from collections.abc import Awaitable, Callable

from fairwarning.engine.protocols import Alarm, DriverFailed, Found

POLL_MS = 2_000
"""The pause between two questions."""
FAILURES_MAX = 5
"""How many questions in a row may fail before the attempt counts as failed."""


async def poll_until_over(ask: Callable[[], Awaitable[Found]], alarm: Alarm) -> Found:
    """Returns the state once it is no longer running. Raises DriverFailed."""
    failures = 0
    while True:
        try:
            found = await ask()
        except DriverFailed:
            failures += 1
            if failures >= FAILURES_MAX:
                raise
        else:
            failures = 0
            if found is not Found.RUNNING:
                return found
        await alarm.pause(POLL_MS)
