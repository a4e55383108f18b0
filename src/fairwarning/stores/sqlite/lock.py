"""One process at a time has the file: an flock beside it, gone with the process however it ends."""

import fcntl
import os
from pathlib import Path

from fairwarning.engine.protocols import StoreDown


class StoreInUse(StoreDown):
    """Another process works on this file."""


class FileLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises StoreInUse without waiting, and OSError if there can be no such file."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreInUse(
                f"process {holder or 'unknown'} holds {self._path}; stop it, or give this one "
                "another file"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """The file stays: whoever removed it could remove another process's lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
