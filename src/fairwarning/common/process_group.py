"""This module ends a program that has its own process group, and all processes of that group."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress

KILLED_S_MAX = 10.0
"""How long to wait after SIGKILL. It takes longer only if, for example, a file system hangs."""
CLEARED_S_MAX = 1.0
"""How long to wait until the parents of ended processes have reaped them; some never do."""
_GONE_CHECK_S = 0.02  # Short, because somebody waits for the end.

_log = logging.getLogger(__name__)


async def end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """Send SIGTERM to the group, and SIGKILL after `grace_s`, or at once if this is cancelled."""
    _signal(process.pid, signal.SIGTERM)
    try:
        await _done(_gone(process), grace_s)
        if process.returncode is None:
            _log.warning("a program did not end within %g s of being asked to", grace_s)
    finally:
        _signal(process.pid, signal.SIGKILL)
        # Wait also when cancelled, because the event loop may end next and leave a zombie process.
        await _done(process.wait(), KILLED_S_MAX)
        await _done(_gone(process), CLEARED_S_MAX)
        if process.returncode is None:
            _log.warning("process %d cannot be ended; look after it yourself", process.pid)


async def end_of_others(group: int, grace_s: float) -> bool:
    """End a group that another process has started. Returns False if some process is left."""
    _signal(group, signal.SIGTERM)
    try:
        await _done(_empty(group), grace_s)
    finally:
        if _signal(group, signal.SIGKILL):
            await _done(_empty(group), KILLED_S_MAX)
    return not _signal(group, 0)


async def _done(work: Coroutine[object, object, object], within_s: float) -> None:
    """Wait until `work` is done, for `within_s` seconds at most.

    This does not use `asyncio.timeout`: in a task that is being cancelled, Python 3.11.2 takes the
    error of the timeout for the cancellation.
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
    """Reap ended processes without a parent, which the first process of a container inherits."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass


def _signal(group: int, number: int) -> bool:
    """Send the signal to the group. Returns False if the group has no process left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # The process runs as another user now, so we may not signal it.
        pass
    return True
