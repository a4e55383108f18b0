"""A domain to throw away, for `fairwarning driver check libvirt`, on the test driver of a libvirtd.

The driver reaches libvirtd through a socket of the check, so that the check can cut the connection.
"""

import asyncio
import secrets
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import libvirt

from fairwarning.drivers.check_target import CheckTarget
from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost
from fairwarning.drivers.libvirt.settings import parse
from fairwarning.engine.protocols import DriverFailed

NEEDED = (
    "set uri to the test driver of a libvirtd, as test+unix:///default?socket=PATH, or name "
    "domains that may be lost with --instance"
)


class Relay:
    """A socket in front of another one, which can be cut and mended."""

    def __init__(self, path: Path, target: str) -> None:
        self._path = path
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def mend(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(self._target)
        ends = (writer, there_writer)
        self._writers.update(ends)
        try:
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        finally:
            self._writers.difference_update(ends)
            for end in ends:
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def throw_away_domain(settings: Mapping[str, str]) -> AsyncIterator[CheckTarget]:
    """Raises DriverFailed if the settings name no test driver of a libvirtd."""
    parts = urlsplit(settings.get("uri", ""))
    sockets = parse_qs(parts.query).get("socket", [])
    if parts.scheme != "test+unix" or not sockets:
        raise DriverFailed(NEEDED)
    host = LibvirtHost(settings["uri"], parse(settings).seconds["call_time"])
    name = f"fairwarning-check-{secrets.token_hex(4)}"
    freezes: Counter[str] = Counter()

    def note(connection: Any, domain: Any, event: int, detail: int, opaque: object) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED:
            freezes[domain.name()] += 1

    def make(connection: Any) -> None:
        kind = libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE
        connection.domainEventRegisterAny(None, kind, note, None)
        connection.defineXML(
            f"<domain type='test'><name>{name}</name><memory>65536</memory>"
            "<os><type>hvm</type></os></domain>"
        ).create()

    async def count(handle: str) -> int:
        return freezes[handle]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "socket"
        relay = Relay(path, sockets[0])
        await relay.mend()
        await host.call(make)
        try:
            yield CheckTarget(
                settings={**settings, "uri": f"test+unix://{parts.path}?socket={path}"},
                handles=(name,),
                count=count,
                take_away=relay.cut,
                bring_back=relay.mend,
            )
        finally:
            await relay.cut()
            await host.call(lambda connection: _remove(connection, name))


def _remove(connection: Any, name: str) -> None:
    domain = connection.lookupByName(name)
    if domain.isActive():
        domain.destroy()
    domain.undefine()
