"""The protocol of a hypervisor, as the driver needs it.

`libvirt_calls.py` implements it with libvirt, and the tests have an implementation of their own.
Every method may take long, and raises DriverFailed with a reason if it cannot be done.
"""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from fairwarning.drivers.libvirt.records import Record
from fairwarning.engine.protocols import DriverFailed


class NoDomain(DriverFailed):
    """The hypervisor has no such domain."""


class State(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"
    OTHER = "neither running, paused nor off"


class Disk(Struct, frozen=True, kw_only=True):
    """A disk that is a volume or a file of the hypervisor. Others are not shown."""

    target: str
    """What the guest calls it, such as vda."""
    pool: str = ""
    volume: str = ""
    path: str = ""
    """The file, if the domain names no pool."""


class Domain(Struct, frozen=True, kw_only=True):
    """A domain as it was a moment ago."""

    uuid: str
    name: str
    state: State
    run_id: int = -1
    """The number of this run, or -1 if it is off. Each start gives another number."""
    is_persistent: bool = True
    records: dict[str, Record] = {}
    disks: tuple[Disk, ...] = ()


class Ask(StrEnum):
    """A way to ask a guest to restart."""

    AGENT = "agent"
    ACPI = "acpi"
    RESET = "reset"


class Host(Protocol):
    uri: str

    async def look(self, handle: str) -> Domain:
        """Return the domain with this name or UUID. Raises NoDomain."""

    async def remember(self, domain: Domain, record: Record) -> None:
        """Keep the record in the domain's metadata, running or not."""

    async def forget(self, domain: Domain, key: str) -> None: ...

    async def suspend(self, domain: Domain) -> None: ...

    async def resume(self, domain: Domain) -> None: ...

    async def start(self, domain: Domain) -> None: ...

    async def destroy(self, domain: Domain) -> None:
        """Pull the plug."""

    async def ask_to_stop(self, domain: Domain, *, with_agent: bool) -> None: ...

    async def ask_to_restart(self, domain: Domain, how: Ask) -> None: ...

    async def boot_id(self, domain: Domain) -> str:
        """Return the boot id that the guest agent reads, or "" if no agent answers."""

    def restarts_seen(self, domain: Domain) -> int:
        """Return how often this process has seen the domain restart."""

    async def undefine(self, domain: Domain) -> None: ...

    async def delete_volume(self, disk: Disk) -> None:
        """Delete the volume of a disk, if there is one."""

    async def empty_volume(self, disk: Disk) -> None:
        """Replace the volume of a disk by an empty one of the same size and format."""

    async def has_volume(self, base: str) -> bool:
        """Return whether there is a volume POOL/VOLUME."""

    async def copy_volume(self, base: str, disk: Disk) -> None:
        """Replace the volume of a disk by a copy of the volume `base`, which is POOL/VOLUME."""

    async def migrate(self, domain: Domain, other: "Host") -> None:
        """Move the running domain to another host."""
