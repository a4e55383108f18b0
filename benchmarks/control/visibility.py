"""Measures the time from `POST /api/v1/events` to a VM's document, beside bare handlers.

The peer does the least that could be called the same: one durable row in SQLite, one list in
memory, two handlers on the same web server.
"""

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairwarning.core.model import operator_actor
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.node import Node, NodeSettings

EVENTS = 300
PATH = "/vm/vm0/metadata/scheduledevents?api-version=2020-07-01"
ME = operator_actor("benchmark")

Post = Callable[[int], Awaitable[str]]
See = Callable[[str], Coroutine[None, None, float]]
"""Returns when the event was seen, on the clock of `perf_counter`."""


async def measure(post: Post, see: See) -> list[float]:
    """Returns milliseconds from the first byte of the request to the answer with the event."""
    took = []
    for number in range(EVENTS):
        began = time.perf_counter()
        watching = asyncio.create_task(see(_id(number)))
        await post(number)
        took.append((await watching - began) * 1000)
    return took


@asynccontextmanager
async def our_node(folder: Path) -> AsyncIterator[Node]:
    settings = NodeSettings(store_url=f"sqlite:///{folder / 'a.db'}", makes_starter_fleet=False)
    async with Node(settings) as node:
        machines = [VirtualMachine(name=f"vm{n}", place=Place(test=True)) for n in range(1000)]
        await node.engine.declare(machines, by=ME)
        yield node


async def ours(folder: Path, *, waits: bool) -> list[float]:
    async with (
        our_node(folder) as node,
        httpx.AsyncClient(base_url=node.control_url) as api,
        httpx.AsyncClient(
            base_url=node.metadata_urls[0], headers={"Metadata": "true"}, timeout=30
        ) as vm,
    ):

        async def post(number: int) -> str:
            body = {"type": "Freeze", "targets": ["vm0"], "id": _id(number), "notice": "1h"}
            answer = await api.post("/api/v1/events", json=body)
            assert answer.status_code == 201, answer.text
            return _id(number)

        async def see(id: str) -> float:
            answer = await vm.get(PATH)
            while id not in answer.text:
                headers = {"If-None-Match": answer.headers["etag"]} if waits else {}
                answer = await vm.get(PATH + ("&wait=20" if waits else ""), headers=headers)
            at = time.perf_counter()
            await api.post(f"/api/v1/events/{id}/cancel")
            return at

        return await measure(post, see)


async def bare(folder: Path) -> list[float]:
    events: list[str] = []
    database = sqlite3.connect(folder / "bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE events (id TEXT PRIMARY KEY)")

    async def add(request: Request) -> Response:
        id = (await request.json())["id"]
        database.execute("INSERT INTO events VALUES (?)", (id,))
        events.append(id)
        return JSONResponse({"id": id}, 201)

    async def show(_: Request) -> Response:
        return JSONResponse(events[-5:])

    app = Starlette(routes=[Route("/e", add, methods=["POST"]), Route("/d", show)])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=url) as api, httpx.AsyncClient(base_url=url) as vm:

        async def post(number: int) -> str:
            await api.post("/e", json={"id": _id(number)})
            return _id(number)

        async def see(id: str) -> float:
            while id not in json.loads((await vm.get("/d")).text):
                pass
            return time.perf_counter()

        took = await measure(post, see)
    server.should_exit = True
    await running
    return took


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012X}"


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p").mkdir()
        (folder / "w").mkdir()
        results = {
            "ours, polling without pause": uvloop.run(ours(folder / "p", waits=False)),
            "ours, long-poll": uvloop.run(ours(folder / "w", waits=True)),
            "bare pair, polling without pause": uvloop.run(bare(folder)),
        }
    peer = statistics.median(results["bare pair, polling without pause"])
    for what, took in results.items():
        middle = statistics.median(took)
        print(f"{what:<34} p50 {middle:6.2f} ms  p99 {_percentile(took, 0.99):6.2f} ms  "
              f"x bare {middle / peer:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
