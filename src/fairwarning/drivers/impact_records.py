"""This module records in files which impacts were begun, by their keys. All nodes share the folder.

A driver needs it only if its hypervisor cannot remember a key itself. The folder's file system must
support locks, as NFS 4 does.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from fairwarning.engine.protocols import DriverFailed, Found, Order


class KeyRecord(Struct, kw_only=True):
    """What is known of one key. It may be changed while it is open."""

    attempt: int = 0
    """The highest attempt that was seen, that of the present order included."""
    state: Found = Found.UNKNOWN
    notes: dict[str, int | str] = {}
    """Whatever the driver must know if another attempt goes on with the impact."""

    def refuse_lower(self, attempt: int) -> None:
        """Raises DriverFailed if a higher attempt was seen already."""
        if attempt < self.attempt:
            raise DriverFailed(f"attempt {self.attempt} was seen already, so {attempt} is too late")


class KeyFiles:
    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    @contextmanager
    def of(self, order: Order) -> Iterator[KeyRecord]:
        """Opens the record of an order's key. Nobody else can open it at the same time.

        The number of the attempt is stored at once, and other changes at the end of the block if it
        raises nothing. Do not await anything in the block: another task that opens the record would
        block the event loop.
        """
        path = self._folder / f"{order.key}.json"
        try:
            with open(self._folder / f"{order.key}.lock", "a", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                record = _read(path)
                if order.attempt > record.attempt:
                    record.attempt = order.attempt
                    _write(path, record)
                before = msgspec.json.encode(record)
                yield record
                if msgspec.json.encode(record) != before:
                    _write(path, record)
        except OSError as error:
            raise DriverFailed(f"{self._folder}: {error.strerror}") from None
        except msgspec.MsgspecError:
            raise DriverFailed(f"{path} is damaged; look what became of the impact") from None


def _read(path: Path) -> KeyRecord:
    try:
        return msgspec.json.decode(path.read_bytes(), type=KeyRecord)
    except FileNotFoundError:
        return KeyRecord()


def _write(path: Path, record: KeyRecord) -> None:
    new = path.with_suffix(".new")
    with open(new, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
