"""A whole node on a virtual clock, and clients of its control plane."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import operator_actor
from fairwarning.core.resources import (
    AvailabilitySet,
    Member,
    Place,
    ScaleSet,
    VirtualMachine,
)
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.node import Node, NodeSettings
from tests.support.http_client import http_client

ME = operator_actor("me")


class Rig:
    """web has web-0 to web-3 in two update domains; workers three; db one. A test fleet."""

    def __init__(self, node: Node, api: httpx.AsyncClient) -> None:
        self.node = node
        self.api = api

    @property
    def clock(self) -> VirtualClock:
        assert isinstance(self.node.clock, VirtualClock)
        return self.node.clock

    async def get(self, path: str, status: int = 200, **parameters: Any) -> Any:
        return self.check(await self.api.get(path, params=parameters), status)

    async def post(self, path: str, body: object = None, status: int = 200, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = (
            await self.api.post(path, json=body if body is not None else {}, headers=named)
            if body is not None
            else await self.api.post(path, headers=named)
        )
        return self.check(answer, status)

    async def delete(self, path: str, status: int = 200, **parameters: Any) -> Any:
        return self.check(await self.api.delete(path, params=parameters), status)

    @staticmethod
    def check(answer: httpx.Response, status: int) -> Any:
        assert answer.status_code == status, answer.text
        found = answer.json()
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert found["status"] == status
            assert found["type"].endswith(found["code"])
        return found

    async def schedule(self, target: str = "web-0", **more: Any) -> dict[str, Any]:
        found = await self.post("/events", {"type": "Reboot", "targets": [target], **more}, 201)
        assert isinstance(found, dict)
        return found

    async def document(self, name: str) -> dict[str, Any]:
        url = f"{self.node.metadata_urls[0]}/vm/{name}/metadata/scheduledevents"
        async with http_client() as client:
            answer = await client.get(
                url, params={"api-version": "2020-07-01"}, headers={"Metadata": "true"}
            )
        found = json.loads(answer.text)
        assert isinstance(found, dict)
        return found

    async def approve(self, name: str, event: str) -> None:
        """As the instance does."""
        url = f"{self.node.metadata_urls[0]}/vm/{name}/metadata/scheduledevents"
        async with http_client() as client:
            answer = await client.post(
                url,
                params={"api-version": "2020-07-01"},
                headers={"Metadata": "true"},
                json={"StartRequests": [{"EventId": event}]},
            )
        assert answer.status_code == 200, answer.text

    async def activate(self, *names: str) -> None:
        for name in names:
            await self.document(name)


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[Rig]:
    chosen: dict[str, Any] = {
        "store_url": "memory:",
        "is_clock_virtual": True,
        "makes_starter_fleet": False,
        **settings,
    }
    async with Node(NodeSettings(**chosen)) as node:
        await declare(node)
        async with http_client(f"{node.control_url}/api/v1") as api:
            yield Rig(node, api)


async def declare(node: Node) -> None:
    if await node.store.scope_ids(limit=1):
        return
    place = Place(test=True)
    members = tuple(Member(name=f"web-{n}", addresses=(f"127.0.1.{10 + n}",)) for n in range(4))
    await node.engine.declare(
        [
            AvailabilitySet(name="web", members=members, update_domains=2, place=place),
            ScaleSet(name="workers", capacity=3, terminate_notice_ms=5 * MINUTE_MS, place=place),
            VirtualMachine(name="db", addresses=("127.0.3.1",), place=place),
        ],
        by=ME,
    )


class Block:
    """The first call of a store's method waits, before it does anything, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Store, name: str) -> None:
        self.reached = asyncio.Event()
        self._gate = asyncio.Event()
        real = getattr(store, name)

        async def call(*args: Any, **named: Any) -> Any:
            if not self.reached.is_set():
                self.reached.set()
                await self._gate.wait()
            return await real(*args, **named)

        monkeypatch.setattr(store, name, call)

    def open(self) -> None:
        self._gate.set()
