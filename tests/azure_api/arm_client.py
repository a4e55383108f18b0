"""A node on a virtual clock, and a client that asks it as az and the SDKs do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.operator_api.rig import Rig, running
from tests.support.http_client import http_client

S = f"/subscriptions/{DEFAULT_SUBSCRIPTION}"
GROUP = f"{S}/resourceGroups/default"
"""Where the rig's fleet is: web with web-0 to web-3, workers, and db."""
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
NETWORK = f"{GROUP}/providers/Microsoft.Network"
VERSION = "2024-11-01"
SOON = "40s"
"""Long enough for any impact of the simulated driver."""
C = TypeVar("C", bound="ArmClient")


class ArmClient:
    """Asks in ARM's form and checks the status of each answer.

    The fleet is that of `tests.operator_api.rig`, in the group `default` and location `local`.
    """

    version = VERSION
    base = ""
    """Where paths without a slash at their start begin."""

    def __init__(self, rig: Rig, http: httpx.AsyncClient) -> None:
        self.rig = rig
        self.http = http

    async def answer(
        self, method: str, path: str, body: object = None, version: str = "", **query: Any
    ) -> httpx.Response:
        """The answer of any status. `top="1"` is `$top=1`."""
        url = path if path.startswith("/") else f"{self.base}/{path}"
        parameters = {"api-version": version or self.version}
        parameters |= {f"${name.removeprefix('$')}": value for name, value in query.items()}
        return await self.http.request(method, url, json=body, params=parameters)

    async def ask(
        self, method: str, path: str, body: object = None, status: int = 200, **more: Any
    ) -> httpx.Response:
        answer = await self.answer(method, path, body, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer

    async def read(
        self, method: str, path: str, body: object = None, status: int = 200, **more: Any
    ) -> Any:
        """The body, None if it is empty; of a refusal the content of its error."""
        answer = await self.ask(method, path, body, status, **more)
        if not answer.content:
            return None
        if status < 400:
            return answer.json()
        (error,) = answer.json().values()
        assert error["code"]
        assert error["message"]
        return error

    async def get(self, path: str, status: int = 200, /, **more: Any) -> Any:
        return await self.read("GET", path, None, status, **more)

    async def put(self, path: str, body: object, status: int = 201, **more: Any) -> Any:
        return await self.read("PUT", path, body, status, **more)

    async def patch(self, path: str, body: object, **more: Any) -> Any:
        return await self.read("PATCH", path, body, **more)

    async def put_group(self, name: str, location: str = "westeurope", **more: Any) -> Any:
        return await self.put(f"{S}/resourcegroups/{name}", {"location": location, **more})

    async def refused(
        self, method: str, path: str, body: object = None, status: int = 400, **more: Any
    ) -> tuple[str, str]:
        """The code and the message, as az prints them."""
        error = await self.read(method, path, body, status, **more)
        return error["code"], error["message"]

    async def progress(self, started: httpx.Response | str) -> Any:
        """What a client that waits is told; `started` may be the operation's URL."""
        url = started if isinstance(started, str) else started.headers["Azure-AsyncOperation"]
        answer = await self.http.get(url)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def status(self, started: httpx.Response | str) -> str:
        return str((await self.progress(started))["status"])

    async def advance(self, by: str = SOON) -> None:
        await self.rig.post("/clock/advance", {"by": by})


@asynccontextmanager
async def running_client(make: type[C], **settings: Any) -> AsyncIterator[C]:
    async with running(**settings) as rig, http_client(rig.node.control_url) as http:
        yield make(rig, http)


@asynccontextmanager
async def asking(**settings: Any) -> AsyncIterator[ArmClient]:
    async with running_client(ArmClient, **settings) as client:
        yield client
