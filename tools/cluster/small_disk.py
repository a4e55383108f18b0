"""A small file system in memory, which can be filled up."""

import subprocess
from contextlib import suppress
from pathlib import Path

from tools.debian_packages import program

_BALLAST = "ballast"
_BLOCK = b"\0" * 65_536


class SmallDisk:
    """It is mounted in our own mount namespace, and gone when that is gone."""

    def __init__(self, path: Path, megabytes: int) -> None:
        self.path = path
        path.mkdir(parents=True)
        options = f"size={megabytes}m,mode=1777"
        command = [program("mount"), "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        subprocess.run(command, check=True)  # noqa: S603

    def fill(self) -> None:
        """Fills it up to the last byte."""
        with (self.path / _BALLAST).open("ab", buffering=0) as file, suppress(OSError):
            while file.write(_BLOCK):
                pass

    def empty(self) -> None:
        (self.path / _BALLAST).unlink(missing_ok=True)
