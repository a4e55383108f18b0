"""This module ends a program that leads a process group of its own, and all that it
started there.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress

KILLED_S_MAX = 10.0
"""More only if the kernel cannot end it, for example on a file system that hangs."""
CLEARED_S_MAX = 1.0
"""What has ended counts as there until its parent clears it away, and that may never be."""
_GONE_CHECK_S = 0.02

_log = logging.getLogger(__name__)


async def end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """Ask the whole group to end, and then make it end; at once if this is cancelled meanwhile."""
    _signal(process.pid, signal.SIGTERM)
    try:
        await _done(_gone(process), grace_s)
        if process.returncode is None:
            _log.warning("a program did not end within %g s of being asked to", grace_s)
    finally:
        _signal(process.pid, signal.SIGKILL)
        # Also when cancelled: whoever ends the event loop next would leave a zombie behind.
        await _done(process.wait(), KILLED_S_MAX)
        await _done(_gone(process), CLEARED_S_MAX)
        if process.returncode is None:
            _log.warning("process %d cannot be ended; look after it yourself", process.pid)


async def end_of_others(group: int, grace_s: float) -> bool:
    """End a group whose leader somebody else has started. Returns False if some of it is left."""
    _signal(group, signal.SIGTERM)
    try:
        await _done(_empty(group), grace_s)
    finally:
        if _signal(group, signal.SIGKILL):
            await _done(_empty(group), KILLED_S_MAX)
    return not _signal(group, 0)


async def _done(work: Coroutine[object, object, object], within_s: float) -> None:
    """Wait for the process, for this time at most.

    It does not use `asyncio.timeout`, which in a task that is being cancelled raises what Python
    3.11.2 takes for the cancellation.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=within_s)
    finally:
        task.cancel()


async def _gone(process: asyncio.subprocess.Process) -> None:
    await process.wait()
    await _empty(process.pid)


async def _empty(group: int) -> None:
    while _signal(group, 0):
        _clear_away(group)
        await asyncio.sleep(_GONE_CHECK_S)


def _clear_away(group: int) -> None:
    """Reap processes that lost their parent: as the first process of a container we
    inherit them.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass


def _signal(group: int, number: int) -> bool:
    """Send the signal. Returns False if no process of the group is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It runs as another user now, and cannot be told anything.
        pass
    return True
