"""Two nodes with metadata servers on one real PostgreSQL, whose past can be put back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fairwarning.boot import make_engine, make_metadata_server, new_event_id
from fairwarning.core.commands import Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, Scope
from fairwarning.core.resources import AvailabilitySet, Member, Place, VirtualMachine
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.service import Engine
from fairwarning.metadata.server import MetadataServer
from fairwarning.metadata.settings import EndpointRules
from fairwarning.stores.postgres import PostgresStore
from tests.metadata.rig import ME, PATH, Client, Response, request
from tests.support.backup import Backup
from tests.support.patience import HANG_S

"""Only hangs are cut off; how long it takes is not what these tests check."""
WEB = AvailabilitySet(
    name="web",
    update_domains=2,
    members=tuple(Member(name=f"web-{n}", addresses=(f"127.0.1.{10 + n}",)) for n in range(4)),
    place=Place(test=True),
)
DB = VirtualMachine(name="db", addresses=("127.0.3.1",), place=Place(test=True))


class ClusterNode:
    def __init__(self, dsn: str) -> None:
        self.clock = SystemClock()
        self.store = PostgresStore(dsn)
        self.engine: Engine = make_engine(self.store, self.clock)
        self.server: MetadataServer

    async def start(self) -> None:
        await self.store.open()
        self.server = await make_metadata_server(
            self.engine, self.store, self.clock, [("127.0.0.1", 0)], EndpointRules()
        )
        await self.engine.start()
        self.server.start()

    async def stop(self) -> None:
        await self.server.stop()
        await self.engine.stop()
        await self.store.close()

    async def connect(self, source: str = "127.0.1.10") -> Client:
        url = urlsplit(self.server.urls[0])
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port, local_addr=(source, 0)
        )
        return Client(reader, writer)

    async def ask(self, tag: str = "", *, path: str = PATH, source: str = "127.0.1.10") -> Response:
        client = await self.connect(source)
        headers = {"Metadata": "true", **({"If-None-Match": tag} if tag else {})}
        await client.send(request(path, headers=headers))
        response = await client.receive()
        await client.close()
        return response

    async def tag(self, source: str = "127.0.1.10") -> str:
        return (await self.ask(source=source)).headers["etag"]

    async def schedule(self, target: str = "web-0", type: EventType = EventType.REBOOT) -> EventId:
        (member,) = self.engine.views.by_name(target)
        command = Schedule(event_id=new_event_id(), type=type, targets=(InstanceName(target),))
        await self.engine.submit(member.view.scope_id, command, by=ME)
        return command.event_id


class Cluster:
    def __init__(self, dsn: str, nodes: list[ClusterNode]) -> None:
        self.backup = Backup(dsn)
        self.nodes = nodes
        self.web: Scope

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def until_shown(self, id: EventId, source: str = "127.0.1.10") -> list[Response]:
        """The first document of each node that has this event."""
        found: list[Response] = []
        async with asyncio.timeout(HANG_S):
            for node in self.nodes:
                while not (response := await node.ask(source=source)).shows(id):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                found.append(response)
        return found


@asynccontextmanager
async def cluster(dsn: str, number: int = 2) -> AsyncIterator[Cluster]:
    nodes = [ClusterNode(dsn) for _ in range(number)]
    found = Cluster(dsn, nodes)
    started: list[ClusterNode] = []
    try:
        for node in nodes:
            await node.start()
            started.append(node)
        found.web, _ = await nodes[0].engine.declare([WEB, DB], by=ME)
        await found.until(lambda: all(len(node.engine.views.ids()) == 2 for node in nodes))
        yield found
    finally:
        for node in reversed(started):
            await node.stop()
