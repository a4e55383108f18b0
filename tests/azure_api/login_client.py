"""A client of the TLS listener for Azure's clients, which logs in as they do."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.operator_api.rig import Rig, running
from tests.support.patience import HANG_S


class LoginClient(NamedTuple):
    rig: Rig
    client: httpx.AsyncClient
    """Over TLS, trusting nothing but the authority that the operator API names."""

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def log_in(
        self, secret: str, at: str = "/adfs/oauth2/token", **more: str
    ) -> httpx.Response:
        form = {"grant_type": "client_credentials", "client_id": "any", "client_secret": secret}
        return await self.client.post(at, data={**form, **more})


@asynccontextmanager
async def running_login_client(folder: Path, **settings: Any) -> AsyncIterator[LoginClient]:
    """Runs a node whose certificates are in `folder`."""
    async with running(azure=("127.0.0.1", 0), azure_folder=folder, **settings) as rig:
        told = await rig.get("/azure")
        assert told["url"] == rig.node.azure_url
        trust = ssl.create_default_context(cadata=told["ca"])
        async with httpx.AsyncClient(verify=trust, base_url=told["url"], timeout=HANG_S) as client:
            yield LoginClient(rig, client)
