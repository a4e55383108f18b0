"""This module remembers the keys of a driver in files. All nodes must share their folder.

A driver needs it only if its hypervisor cannot remember a key itself. The folder's file system must
know locks; NFS 4 does.
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
        """Opens the record of an order's key, which nobody else has open at the same time.

        The attempt is remembered at once, and changes if the block raises nothing. Don't await
        anything in the block: it would keep the event loop from opening the record elsewhere.
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
