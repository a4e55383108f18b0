"""A server to talk to, and a client that sends exactly the bytes it is given.

web-0 to web-3 have the addresses 127.0.1.10 to 13, workers_0 to 2 have 127.0.2.10 to 12;
the client can be any of them, because all of 127.0.0.0/8 is this machine.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urlsplit

from fairwarning.boot import make_metadata_server
from fairwarning.core.commands import Command, Schedule
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    NodeId,
    Scope,
    operator_actor,
)
from fairwarning.core.resources import (
    AvailabilitySet,
    Member,
    Place,
    ScaleSet,
    VirtualMachine,
)
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.active_faults import Faults
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Receipt
from fairwarning.engine.service import Engine
from fairwarning.metadata.connection import Connection
from fairwarning.metadata.server import MetadataServer
from fairwarning.metadata.settings import EndpointRules
from fairwarning.stores.memory import MemoryStore
from tests.engine.harness import ids
from tests.support.patience import HANG_S

ME = operator_actor("me")
V = "2020-07-01"
PATH = f"/metadata/scheduledevents?api-version={V}"


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes = field(repr=False)

    def json(self) -> dict[str, object]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found

    @property
    def events(self) -> list[dict[str, object]]:
        found = self.json()["Events"]
        assert isinstance(found, list)
        return found

    def shows(self, id: EventId) -> bool:
        return id in [each["EventId"] for each in self.events]

    @property
    def incarnation(self) -> object:
        return self.json()["DocumentIncarnation"]


class Seconds:
    """Of the rate limit. Only the test lets them pass, so that it does not matter how long a
    request takes."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self, *, has_body: bool = True) -> Response:
        async with asyncio.timeout(HANG_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split()[1])
            pairs = (line.split(": ", 1) for line in lines[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            length = int(headers.get("content-length", 0)) if has_body else 0
            body = await self.reader.readexactly(length)
        return Response(status, headers, body, head + body)

    async def is_closed(self) -> bool:
        async with asyncio.timeout(HANG_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True

    def leave(self, *, resets: bool) -> None:
        """Without waiting for an answer; the server sees an end, or a reset."""
        if resets:
            linger = struct.pack("ii", 1, 0)
            self.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


class Rig:
    running: ClassVar[list["Rig"]] = []
    """Those that were started and not stopped."""

    def __init__(
        self,
        rules: EndpointRules | None = None,
        *,
        test: bool = True,
        make_store: Callable[[VirtualClock], MemoryStore] = MemoryStore,
    ) -> None:
        self.clock = VirtualClock()
        self.store = make_store(self.clock)
        self.engine = Engine(
            store=self.store,
            clock=self.clock,
            drivers={"simulated": SimulatedDriver(self.clock)},
            node=NodeId("n1"),
            ids=ids(),
        )
        self.rules = rules or EndpointRules()
        self.faults = Faults(self.clock, seed=1)
        self.place = Place(test=test)
        self.server: MetadataServer | None = None
        self._clients: list[Client] = []

    async def start(self, host: str = "127.0.0.1") -> None:
        self.running.append(self)
        await self.engine.start()
        members = tuple(Member(name=f"web-{n}", addresses=(f"127.0.1.{10 + n}",)) for n in range(4))
        workers = tuple(f"127.0.2.{10 + n}" for n in range(3))
        self.web, self.workers, self.six = await self.engine.declare(
            [
                AvailabilitySet(name="web", members=members, update_domains=2, place=self.place),
                ScaleSet(
                    name="workers",
                    capacity=3,
                    addresses=workers,
                    terminate_notice_ms=5 * MINUTE_MS,
                    place=self.place,
                ),
                VirtualMachine(name="six", addresses=("::1",), place=self.place),
            ],
            by=ME,
        )
        self.server = await make_metadata_server(
            self.engine, self.store, self.clock, [(host, 0)], self.rules, self.faults
        )
        self.server.start()

    async def stop(self) -> None:
        self.running.remove(self)
        for client in self._clients:
            await client.close()
        if self.server is not None:
            await self.server.stop()
        await self.engine.stop()

    async def until_alone(self) -> None:
        """The server has noticed that nobody is connected."""
        assert self.server is not None
        async with asyncio.timeout(HANG_S):
            while self.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    @property
    def connections(self) -> list[Connection]:
        """The connections that are open at the server."""
        assert self.server is not None
        return [*self.server._state.connections]

    @property
    def address(self) -> tuple[str, int]:
        assert self.server is not None
        url = urlsplit(self.server.urls[0])
        assert url.hostname is not None
        assert url.port is not None
        return url.hostname, url.port

    async def connect(self, source: str = "127.0.1.10") -> Client:
        reader, writer = await asyncio.open_connection(*self.address, local_addr=(source, 0))
        client = Client(reader, writer)
        self._clients.append(client)
        return client

    async def ask(
        self,
        path: str = PATH,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        source: str = "127.0.1.10",
    ) -> Response:
        client = await self.connect(source)
        await client.send(request(path, method=method, headers=headers, body=body))
        response = await client.receive(has_body=method != "HEAD")
        await client.close()
        return response

    async def submit(self, scope: Scope, command: Command) -> Receipt:
        return await self.engine.submit(scope.id, command, by=ME)

    async def schedule(
        self,
        target: str = "web-0",
        type: EventType = EventType.REBOOT,
        notice_ms: int | None = None,
    ) -> EventId:
        scope = self.web if target.startswith("web") else self.workers
        command = Schedule(
            event_id=self.engine.new_id(),
            type=type,
            targets=(InstanceName(target),),
            notice_ms=notice_ms,
        )
        await self.submit(scope, command)
        return command.event_id

    async def schedule_described(self, target: str, type: EventType, description: str) -> None:
        command = Schedule(
            event_id=self.engine.new_id(),
            type=type,
            targets=(InstanceName(target),),
            description=description,
        )
        await self.submit(self.web, command)


def request(
    path: str = PATH,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> bytes:
    """`headers` replace the usual ones; a length is added for a body."""
    lines = {"Host": "169.254.169.254", **({"Metadata": "true"} if headers is None else headers)}
    if body:
        lines["Content-Length"] = str(len(body))
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("latin-1") + body
