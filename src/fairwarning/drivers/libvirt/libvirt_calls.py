"""Calls libvirt. Each call runs on a thread of its own and has a time limit.

The event loop never waits for libvirt. A call that hangs keeps only its own thread, which ends with
the process. A connection is kept, and made again when libvirt says that it was closed. The event
loop of libvirt runs on one more thread; it sends keepalives, and tells of restarts.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import libvirt

from fairwarning.drivers.libvirt import domain_xml
from fairwarning.drivers.libvirt.host import Ask, Disk, Domain, Host, NoDomain, State
from fairwarning.drivers.libvirt.records import NAMESPACE, Record, to_xml
from fairwarning.engine.protocols import DriverFailed

KEEPALIVE_S = 5
KEEPALIVES_MAX = 3
"""A connection is closed if this many keepalives get no answer. One may be lost."""
AGENT_S = 3
"""How long a guest agent may take to answer a question."""
T = TypeVar("T")
_STATES = {
    libvirt.VIR_DOMAIN_RUNNING: State.RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: State.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: State.PAUSED,
    libvirt.VIR_DOMAIN_SHUTDOWN: State.RUNNING,
    libvirt.VIR_DOMAIN_SHUTOFF: State.OFF,
    libvirt.VIR_DOMAIN_CRASHED: State.OFF,
}
_ASKS = {
    Ask.AGENT: libvirt.VIR_DOMAIN_REBOOT_GUEST_AGENT,
    Ask.ACPI: libvirt.VIR_DOMAIN_REBOOT_ACPI_POWER_BTN,
}
_UNDEFINE = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
)
_MIGRATE = (
    libvirt.VIR_MIGRATE_LIVE
    | libvirt.VIR_MIGRATE_PERSIST_DEST
    | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
)
_log = logging.getLogger(__name__)
_events_lock = threading.Lock()
_events_thread: threading.Thread | None = None


class _Kept:
    """A connection that is kept, and what was seen over it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: Any = None


class LibvirtHost:
    """The hypervisor at one URI."""

    def __init__(self, uri: str, call_s: float) -> None:
        self.uri = uri
        self._call_s = call_s
        self._kept = _Kept()
        self._restarts: Counter[str] = Counter()

    async def look(self, handle: str) -> Domain:
        try:
            return await self._call(lambda connection: _look(connection, handle))
        except NoDomain:
            raise
        except DriverFailed:
            # The connection may have died unnoticed. Looking changes nothing, so try once more.
            return await self._call(lambda connection: _look(connection, handle))

    async def remember(self, domain: Domain, record: Record) -> None:
        await self._on(domain, lambda found: _set_metadata(found, record.key, to_xml(record)))

    async def forget(self, domain: Domain, key: str) -> None:
        await self._on(domain, lambda found: _set_metadata(found, key, None))

    async def suspend(self, domain: Domain) -> None:
        await self._on(domain, lambda found: found.suspend())

    async def resume(self, domain: Domain) -> None:
        await self._on(domain, lambda found: found.resume())

    async def start(self, domain: Domain) -> None:
        await self._on(domain, lambda found: found.create())

    async def destroy(self, domain: Domain) -> None:
        await self._on(domain, lambda found: found.destroy())

    async def ask_to_stop(self, domain: Domain, *, with_agent: bool) -> None:
        flags = libvirt.VIR_DOMAIN_SHUTDOWN_GUEST_AGENT if with_agent else 0
        await self._on(domain, lambda found: found.shutdownFlags(flags))

    async def ask_to_restart(self, domain: Domain, how: Ask) -> None:
        if how is Ask.RESET:
            await self._on(domain, lambda found: found.reset(0))
        else:
            await self._on(domain, lambda found: found.reboot(_ASKS[how]))

    async def boot_id(self, domain: Domain) -> str:
        try:
            return await self._on(domain, _boot_id)
        except DriverFailed:
            return ""

    def restarts_seen(self, domain: Domain) -> int:
        return self._restarts[domain.uuid]

    async def undefine(self, domain: Domain) -> None:
        await self._on(domain, _undefine)

    async def delete_volume(self, disk: Disk) -> None:
        await self._call(lambda connection: _delete_volume(connection, disk))

    async def empty_volume(self, disk: Disk) -> None:
        await self._call(lambda connection: _replace_volume(connection, disk, None))

    async def has_volume(self, base: str) -> bool:
        return await self._call(lambda connection: _base_volume(connection, base) is not None)

    async def copy_volume(self, base: str, disk: Disk) -> None:
        await self._call(lambda connection: _replace_volume(connection, disk, base), is_long=True)

    async def migrate(self, domain: Domain, other: Host) -> None:
        assert isinstance(other, LibvirtHost)

        def move(connection: Any) -> None:
            there = other.connection()
            connection.lookupByUUIDString(domain.uuid).migrate3(there, {}, _MIGRATE)

        await self._call(move, is_long=True)

    async def call(self, function: Callable[[Any], T]) -> T:
        """Calls a function with the connection, for what no method here offers."""
        return await self._call(function)

    async def _on(self, domain: Domain, act: Callable[[Any], T]) -> T:
        return await self._call(lambda connection: act(_by_uuid(connection, domain)))

    async def _call(self, function: Callable[[Any], T], *, is_long: bool = False) -> T:
        """Runs a function with the connection on a thread. Raises DriverFailed. A long call has no
        limit of its own, but the attempt has one, and the server cancels it then.
        """
        kept = self._kept
        try:
            async with asyncio.timeout(None if is_long else self._call_s):
                return await _on_thread(lambda: function(self.connection(kept)))
        except TimeoutError:
            # Whatever hangs on the old connection may hang for ever.
            if self._kept is kept:
                self._kept = _Kept()
            raise DriverFailed(f"libvirt gave no answer within {self._call_s:g} s") from None
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                raise NoDomain(str(error)) from None
            raise DriverFailed(f"libvirt: {error}") from None

    def connection(self, kept: _Kept | None = None) -> Any:
        """Returns the connection, which is made again if it was closed. Called on threads only."""
        kept = kept or self._kept
        with kept.lock:
            if kept.connection is None or not kept.connection.isAlive():
                kept.connection = self._open()
            return kept.connection

    def _open(self) -> Any:
        _run_events()
        connection = libvirt.open(self.uri)
        try:
            connection.setKeepAlive(KEEPALIVE_S, KEEPALIVES_MAX)
        except libvirt.libvirtError:
            _log.debug("this hypervisor knows no keepalives")  # One in the same process needs none.
        connection.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_REBOOT, self._note_restart, None
        )
        return connection

    def _note_restart(self, connection: Any, domain: Any, opaque: object) -> None:
        self._restarts[domain.UUIDString()] += 1


async def _on_thread(function: Callable[[], T]) -> T:
    """Runs a function on a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        result: Any = None
        raised: BaseException | None = None
        try:
            result = function()
        except BaseException as error:
            raised = error
        try:
            loop.call_soon_threadsafe(_settle, future, result, raised)
        except RuntimeError:  # The loop has ended meanwhile.
            return

    threading.Thread(target=run, name="libvirt call", daemon=True).start()
    return await future


def _settle(future: "asyncio.Future[Any]", result: Any, raised: BaseException | None) -> None:
    if future.done():
        return
    if raised is None:
        future.set_result(result)
    else:
        future.set_exception(raised)


def _run_events() -> None:
    """Starts libvirt's event loop, once in a process and before the first connection."""
    global _events_thread  # noqa: PLW0603
    with _events_lock:
        if _events_thread is not None:
            return
        # Errors are raised as exceptions; libvirt would print them as well.
        libvirt.registerErrorHandler(lambda _, __: None, None)
        libvirt.virEventRegisterDefaultImpl()
        _events_thread = threading.Thread(target=_events, name="libvirt events", daemon=True)
        _events_thread.start()


def _events() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


def _look(connection: Any, handle: str) -> Domain:
    found = _by_handle(connection, handle)
    xml = found.XMLDesc(0)
    return Domain(
        uuid=found.UUIDString(),
        name=found.name(),
        state=_STATES.get(found.state()[0], State.OTHER),
        run_id=found.ID(),
        is_persistent=bool(found.isPersistent()),
        records=domain_xml.records_in(xml),
        disks=domain_xml.disks_in(xml),
    )


def _by_handle(connection: Any, handle: str) -> Any:
    try:
        return connection.lookupByName(handle)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
    try:
        return connection.lookupByUUIDString(handle)
    except libvirt.libvirtError as error:
        if error.get_error_code() not in {libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_INVALID_ARG}:
            raise
    raise NoDomain(f"the hypervisor has no domain {handle!r}")


def _by_uuid(connection: Any, domain: Domain) -> Any:
    try:
        return connection.lookupByUUIDString(domain.uuid)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
    raise NoDomain(f"the domain {domain.name!r} with UUID {domain.uuid} is gone")


def _set_metadata(found: Any, key: str, xml: str | None) -> None:
    flags = libvirt.VIR_DOMAIN_AFFECT_LIVE if found.isActive() else 0
    if found.isPersistent():
        flags |= libvirt.VIR_DOMAIN_AFFECT_CONFIG
    element = libvirt.VIR_DOMAIN_METADATA_ELEMENT
    found.setMetadata(element, xml, "fairwarning", f"{NAMESPACE}{key}", flags)


def _undefine(found: Any) -> None:
    try:
        found.undefineFlags(_UNDEFINE)
    except libvirt.libvirtError as error:
        if error.get_error_code() not in {
            libvirt.VIR_ERR_INVALID_ARG,
            libvirt.VIR_ERR_NO_SUPPORT,
            libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED,
        }:
            raise
        found.undefine()  # An old or simple hypervisor knows none of the flags.


def _boot_id(found: Any) -> str:
    import base64  # noqa: PLC0415
    import json  # noqa: PLC0415

    import libvirt_qemu  # noqa: PLC0415  (only QEMU has it)

    def ask(command: str, **arguments: object) -> Any:
        request = json.dumps({"execute": command, "arguments": arguments})
        return json.loads(libvirt_qemu.qemuAgentCommand(found, request, AGENT_S, 0))["return"]

    handle = ask("guest-file-open", path="/proc/sys/kernel/random/boot_id")
    try:
        read = ask("guest-file-read", handle=handle)
    finally:
        ask("guest-file-close", handle=handle)
    return base64.b64decode(read["buf-b64"]).decode(errors="replace").strip()


def _volume(connection: Any, disk: Disk) -> Any:
    """Returns the volume of a disk, or None if there is none."""
    try:
        if disk.pool:
            return connection.storagePoolLookupByName(disk.pool).storageVolLookupByName(disk.volume)
        return connection.storageVolLookupByPath(disk.path)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_STORAGE_VOL:
            raise
        return None


def _base_volume(connection: Any, base: str) -> Any:
    pool, _, volume = base.partition("/")
    return _volume(connection, Disk(target="", pool=pool, volume=volume))


def _delete_volume(connection: Any, disk: Disk) -> None:
    volume = _volume(connection, disk)
    if volume is not None:
        volume.delete(0)


def _replace_volume(connection: Any, disk: Disk, base: str | None) -> None:
    """Replaces a volume by a copy of `base`, or by an empty one. It may be called again."""
    old = _volume(connection, disk)
    if base is not None:
        source = _base_volume(connection, base)
        if source is None:
            raise DriverFailed(f"there is no volume {base}")
    elif old is not None:
        source = old
    else:
        raise DriverFailed(f"the volume of {disk.target} is gone, so its size is not known")
    xml = source.XMLDesc(0)
    name = disk.volume or disk.path.rpartition("/")[2]
    if old is not None:
        pool = old.storagePoolLookupByVolume()
        capacity = max(domain_xml.volume_capacity(old.XMLDesc(0)), domain_xml.volume_capacity(xml))
    else:
        pool = (
            connection.storagePoolLookupByName(disk.pool)
            if disk.pool
            else connection.storagePoolLookupByTargetPath(disk.path.rpartition("/")[0])
        )
        capacity = domain_xml.volume_capacity(xml)
    wanted = domain_xml.new_volume(name, capacity, domain_xml.volume_format(xml))
    if old is not None:
        old.delete(0)
    if base is None:
        pool.createXML(wanted, 0)
    else:
        pool.createXMLFrom(wanted, source, 0)
