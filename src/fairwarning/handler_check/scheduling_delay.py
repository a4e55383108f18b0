"""Measures how long the processes of a handler waited for a core of a busy machine.

The check takes this time off its patience, so that a verdict does not depend on what else runs on
the machine. Only Linux tells it; elsewhere it is 0.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_NS = 1e9


def scheduling_delay_s(group: int) -> float:
    """Return for how many seconds the processes of this group, and we, could have run and did not.

    The delays of all threads are added. A process that has ended is left out, so the sum may fall.
    """
    return sum(_delay_s(pid) for pid in (os.getpid(), *_members(group)))


def _members(group: int) -> Iterator[int]:
    for each in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in parentheses, may contain spaces.
            fields = each.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                yield int(each.parent.name)


def _delay_s(pid: int) -> float:
    total = 0
    for each in _PROC.glob(f"{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(each.read_text().split()[1])
    return total / _NS
