"""A wall clock that can be set for one process, by a small library that is loaded before others.

It covers what a process asks its C library: the time of day in Python and in PostgreSQL. It does
not cover the monotonic clock, which no step changes, nor the time stamps of files.
"""

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.debian_packages import program

_SOURCE = Path(__file__).with_suffix(".c")
_NANOSECONDS = struct.Struct("=q")


def build_library(folder: Path) -> Path:
    """Compiles the library, and returns its file."""
    library = folder / "wrong_clock.so"
    command = [program("cc"), "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True)  # noqa: S603
    return library


class WrongClock:
    def __init__(self, file: Path, library: Path) -> None:
        self._file = file
        file.write_bytes(_NANOSECONDS.pack(0))
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "WRONG_CLOCK_FILE": str(file),
        }
        """What a process needs in its environment, so that this is its clock."""

    def set(self, ahead_s: float) -> None:
        """Makes the clock this much fast at once, or slow if it is negative."""
        with self._file.open("r+b") as file:
            file.write(_NANOSECONDS.pack(round(ahead_s * 1e9)))
