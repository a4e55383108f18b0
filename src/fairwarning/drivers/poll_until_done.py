"""Waiting for an impact that is already under way somewhere else."""

from collections.abc import Awaitable, Callable

from fairwarning.engine.protocols import Alarm, DriverFailed, Found

POLL_MS = 2_000
SILENCES_MAX = 5
"""So many questions in a row may go unanswered before the attempt counts as failed."""


async def joined(ask: Callable[[], Awaitable[Found]], alarm: Alarm) -> Found:
    """What became of it once it is no longer running."""
    silences = 0
    while True:
        try:
            found = await ask()
        except DriverFailed:
            silences += 1
            if silences >= SILENCES_MAX:
                raise
        else:
            silences = 0
            if found is not Found.RUNNING:
                return found
        await alarm.pause(POLL_MS)
