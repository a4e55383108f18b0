"""What operators notice when the store steps back: the stream goes on, and a figure says so."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
from psycopg.conninfo import conninfo_to_dict

from fairwarning.node import Node, NodeSettings
from tests.operator_api.rig import Rig, declare
from tests.operator_api.test_health import metrics, value
from tests.operator_api.test_stream import read
from tests.support.backup import Backup
from tests.support.http_client import http_client
from tests.support.patience import HANG_S


def url_of(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    return f"postgresql:///{parts['dbname']}?host={parts['host']}&user={parts['user']}"


async def entries(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def scheduled(stream: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    """The next line that announces an event."""
    async with asyncio.timeout(HANG_S):
        while (entry := await anext(stream))["kind"] != "Scheduled":
            pass
        return entry


async def test_streams_go_on_and_miss_nothing(postgres_dsn: str) -> None:
    """Though the journal's numbers are given out again, as after a standby took over."""
    settings = NodeSettings(store_url=url_of(postgres_dsn), makes_starter_fleet=False)
    backup = Backup(postgres_dsn)
    async with AsyncExitStack() as stack:
        rigs = []
        for _ in range(2):
            node = await stack.enter_async_context(Node(settings))
            await declare(node)
            client = http_client(f"{node.control_url}/api/v1")
            rigs.append(Rig(node, await stack.enter_async_context(client)))
        one, two = rigs
        await one.activate("web-0")
        streams = []
        for rig in rigs:
            answer = await stack.enter_async_context(rig.api.stream("GET", "/stream"))
            streams.append(entries(answer))
        first = await one.schedule("web-0")
        for stream in streams:
            assert (await scheduled(stream))["event"] == first["id"]
        await backup.save()
        for target in ("web-1", "web-2", "web-3"):
            await one.schedule(target)
            for stream in streams:
                last = await scheduled(stream)
        await backup.restore(lower_by=await backup.lost())
        new = [await rig.schedule(target, type="Freeze") for rig, target in zip(
            (one, two, one), ("web-1", "web-2", "web-3"), strict=True)]  # fmt: skip
        for stream in streams:
            assert [(await scheduled(stream))["event"] for _ in new] == [each["id"] for each in new]
        for rig in rigs:
            again = await read(rig, 4, last_event_id=last["position"])
            found = [each["event"] for each in again if each["kind"] == "Scheduled"]
            assert found[0] == new[0]["id"], "who comes back with a position that is lost"
            assert value(await metrics(rig), "fairwarning_store_step_backs_total") >= 1
