"""A node, and short ways to ask it in ARM's form. Answers that say no are checked for theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.operator_api.rig import Rig, running
from tests.support.http_client import http_client

S = f"/subscriptions/{DEFAULT_SUBSCRIPTION}"
COMPUTE = f"{S}/resourceGroups/default/providers/Microsoft.Compute"
"""Where the rig's fleet is: web with web-0 to web-3, workers, and db."""
VERSION = "2024-11-01"


class Asking:
    def __init__(self, rig: Rig, http: httpx.AsyncClient) -> None:
        self.rig = rig
        self.http = http

    async def answer(
        self, method: str, path: str, body: object = None, /, **query: str
    ) -> httpx.Response:
        """`top="1"` is `$top=1`."""
        named = {f"${name}": value for name, value in query.items()}
        return await self.http.request(
            method, path, json=body, params={"api-version": VERSION, **named}
        )

    async def ask(
        self, method: str, path: str, body: object = None, status: int = 200, /, **query: str
    ) -> Any:
        """The body, None if it is empty; of a refusal the inside of its error."""
        found = await self.answer(method, path, body, **query)
        assert found.status_code == status, (found.status_code, found.text)
        if not found.content:
            return None
        if status < 400:
            return found.json()
        (error,) = found.json().values()
        assert error["code"]
        assert error["message"]
        return error

    async def get(self, path: str, status: int = 200, /, **query: str) -> Any:
        return await self.ask("GET", path, None, status, **query)

    async def put_group(self, name: str, location: str = "westeurope", **more: Any) -> Any:
        body = {"location": location, **more}
        return await self.ask("PUT", f"{S}/resourcegroups/{name}", body, 201)


@asynccontextmanager
async def asking(**settings: Any) -> AsyncIterator[Asking]:
    async with (
        running(**settings) as rig,
        http_client(rig.node.control_url) as http,
    ):
        yield Asking(rig, http)
