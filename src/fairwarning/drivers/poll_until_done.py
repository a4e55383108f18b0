"""Waits for an impact that is already under way. It asks for the state until that changes."""

from collections.abc import Awaitable, Callable

from fairwarning.engine.protocols import Alarm, DriverFailed, Found

POLL_MS = 2_000
"""The pause between two calls of `ask`, which may start a program each time."""
FAILURES_MAX = 5
"""After this many failed calls of `ask` in a row, the attempt has failed."""


async def poll_until_over(ask: Callable[[], Awaitable[Found]], alarm: Alarm) -> Found:
    """Calls `ask` until the state is not RUNNING, and returns that state. Raises DriverFailed."""
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
