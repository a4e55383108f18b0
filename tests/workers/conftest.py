"""An engine and workers in one process, which talk over a real Unix socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fairwarning.boot import make_engine, new_event_id
from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, Scope
from fairwarning.core.resources import AvailabilitySet, Member, Place
from fairwarning.engine.clocks import SystemClock
from fairwarning.metadata.server import open_socket
from fairwarning.metadata.settings import EndpointRules
from fairwarning.stores.memory import MemoryStore
from fairwarning.workers.engine_server import EngineServer
from fairwarning.workers.worker import Worker, WorkerSettings
from tests.metadata.rig import ME, PATH, Client, Response, request
from tests.support.patience import HANG_S

WEB = AvailabilitySet(
    name="web",
    members=tuple(Member(name=f"web-{n}", addresses=(f"127.0.1.{10 + n}",)) for n in range(4)),
    update_domains=2,
    place=Place(test=True),
)


class WorkerRig:
    """A node whose polls are answered by workers."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "engine.sock")
        self.clock = SystemClock()
        self.store = MemoryStore(self.clock)
        self.workers: list[Worker] = []
        self._urls: dict[Worker, str] = {}
        self._clients: list[Client] = []
        self.web: Scope

    async def start(self) -> None:
        await self.start_engine()
        (self.web,) = await self.engine.declare([WEB], by=ME)

    async def start_engine(self) -> None:
        """Start the engine's process, or what stands for a new one."""
        self.engine = make_engine(self.store, self.clock)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.setblocking(False)
        listener.bind(self._new_path())
        views = await self.engine.show()
        self.server = EngineServer(listener, [], self.engine, views, self.store, self.clock)
        await self.engine.start()
        self.server.start()

    def _new_path(self) -> str:
        Path(self.path).unlink(missing_ok=True)
        return self.path

    async def stop_engine(self) -> None:
        await self.server.stop()
        await self.engine.stop()

    async def add_worker(self, rules: EndpointRules | None = None) -> Worker:
        opened = open_socket("127.0.0.1", 0)
        host, port = opened.getsockname()
        worker = Worker(
            WorkerSettings(
                number=len(self.workers) + 1,
                engine_path=self.path,
                sockets=[opened],
                rules=rules or EndpointRules(),
            )
        )
        self.workers.append(worker)
        self._urls[worker] = f"http://{host}:{port}"
        async with asyncio.timeout(HANG_S):
            await worker.start()
        return worker

    async def stop(self) -> None:
        for client in self._clients:
            await client.close()
        for worker in self.workers:
            await worker.stop()
        await self.stop_engine()

    async def connect(self, worker: Worker, source: str = "127.0.1.10") -> Client:
        url = urlsplit(self._urls[worker])
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port, local_addr=(source, 0)
        )
        self._clients.append(Client(reader, writer))
        return self._clients[-1]

    async def ask(
        self,
        worker: Worker,
        method: str = "GET",
        body: bytes = b"",
        *,
        path: str = PATH,
        source: str = "127.0.1.10",
        **headers: str,
    ) -> Response:
        client = await self.connect(worker, source)
        named = {"Metadata": "true"} | {k.replace("_", "-"): v for k, v in headers.items()}
        await client.send(request(path, method=method, headers=named, body=body))
        return await client.receive()

    async def schedule(self) -> EventId:
        command = Schedule(
            event_id=new_event_id(), type=EventType.REBOOT, targets=(InstanceName("web-0"),)
        )
        await self.engine.submit(self.web.id, command, by=ME)
        return command.event_id

    async def cancel(self, id: EventId) -> None:
        await self.engine.submit(self.web.id, Cancel(event_id=id, reason=""), by=ME)

    async def until_shown(self, worker: Worker, id: EventId, *, is_shown: bool = True) -> Response:
        async with asyncio.timeout(HANG_S):
            while True:
                response = await self.ask(worker)
                if response.shows(id) is is_shown:
                    return response


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[WorkerRig]:
    rig = WorkerRig(tmp_path)
    await rig.start()
    yield rig
    await rig.stop()
