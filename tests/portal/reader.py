"""A reader of pages without a browser: gets them, and sends their forms as a browser would."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.operator_api.rig import Rig
from tests.support.http_client import http_client


class Reader:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def see(self, path: str, status: int = 200, **headers: str) -> str:
        answer = await self.client.get(path, headers=headers)
        assert answer.status_code == status, answer.text
        return html.unescape(answer.text)

    async def send(self, page: str, path: str, **fields: str) -> str:
        """The form of `page` that goes to `path`; gives what is said afterwards."""
        text = (await self.client.get(page)).text
        form = re.search(rf'<form[^>]*action="{re.escape(path)}".*?</form>', text, re.S)
        button = re.search(rf'<button[^>]* form="(.*?)" formaction="{re.escape(path)}"', text)
        if button is not None:
            form = re.search(rf'<form id="{button[1]}".*?</form>', text, re.S)
        assert form is not None, f"{page} has no form for {path}"
        hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form[0]))
        sent = {**{name: html.unescape(value) for name, value in hidden.items()}, **fields}
        answer = await self.client.post(path, data=sent)
        assert answer.status_code == 303, answer.text
        after = await self.see(answer.headers["location"])
        said = re.search(r'<p class="said[^"]*">(.*?)</p>', after)
        return said[1] if said else ""


@asynccontextmanager
async def reading(rig: Rig) -> AsyncIterator[Reader]:
    async with http_client(rig.node.control_url) as client:
        yield Reader(client)


def part(page: str, id: str) -> str:
    """From the part of this id to the next part."""
    found = re.search(rf'id="{id}"[^>]*data-live>(.*?)(?=id="[^"]+"[^>]*data-live>|\Z)', page, re.S)
    assert found is not None, f"there is no part {id!r}"
    return found[1]
