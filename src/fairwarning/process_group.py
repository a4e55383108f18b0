"""Ends a program that leads a process group of its own, and all that it started there."""

import asyncio
import os
import signal
from contextlib import suppress

KILLED_S_MAX = 10.0
"""More only if the kernel cannot end it, for example on a file system that hangs."""
CLEARED_S_MAX = 1.0
"""What has ended counts as there until its parent clears it away, and it may have none."""
_GONE_CHECK_S = 0.02


async def end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """All of its group is first asked and then made to, at once if this is cancelled meanwhile."""
    _signal(process.pid, signal.SIGTERM)
    try:
        await _gone(process, grace_s)
    finally:
        _signal(process.pid, signal.SIGKILL)
        # Also when cancelled: whoever ends the event loop next would leave a zombie behind.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), KILLED_S_MAX)
        await _gone(process, CLEARED_S_MAX)


async def _gone(process: asyncio.subprocess.Process, within_s: float) -> None:
    """Returns at the latest after that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await process.wait()
            while _signal(process.pid, 0):  # noqa: ASYNC110 - nobody tells when a group is gone
                await asyncio.sleep(_GONE_CHECK_S)


def _signal(group: int, number: int) -> bool:
    """False if nobody of the group is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
