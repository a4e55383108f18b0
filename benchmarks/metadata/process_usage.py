"""Reads from /proc what a process and its children have used."""

import os
from collections import defaultdict
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Fields of /proc/PID/stat after the name, which may itself hold spaces."""


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of the tree, without children that have ended."""
    stats = (_stat(each) for each in _tree(pid))
    return sum(int(stat[_USER]) + int(stat[_SYSTEM]) for stat in stats if stat) / _TICKS_PER_S


def resident_bytes(pid: int) -> int:
    return _PAGE_BYTES * sum(
        int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in _tree(pid)
    )


def peak_bytes(pid: int) -> int:
    """Returns the sum of the peak memory of each process of the tree."""
    statuses = (Path(f"/proc/{each}/status").read_text() for each in _tree(pid))
    return 1024 * sum(int(status.partition("VmHWM:")[2].split()[0]) for status in statuses)


def _tree(root: int) -> list[int]:
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children[int(stat[_PARENT])].append(int(entry.name))
    tree = [root]
    for pid in tree:
        tree.extend(children[pid])
    return tree


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
