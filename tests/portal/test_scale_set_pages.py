"""The pages of scale sets: creating never changes what is there."""

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.operator_api.rig import Rig, running
from tests.portal.reader import reading

FORM = {
    "name": "workers",
    "capacity": "1",
    "orchestration": "uniform",
    "priority": "Regular",
    "update_domains": "5",
    "termination": "off",
}


_HIDDEN = re.compile(r'type="hidden" name="([^"]+)" value="([^"]*)"')


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def client(rig: Rig) -> AsyncIterator[httpx.AsyncClient]:
    async with reading(rig) as found:
        yield found.client


async def submit(client: httpx.AsyncClient, page: str, path: str, **fields: str) -> httpx.Response:
    hidden = dict(_HIDDEN.findall((await client.get(page)).text))
    return await client.post(path, data={**hidden, **fields})


async def create(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await submit(client, "/scale-sets/new", "/scale-sets/new", **{**FORM, **fields})


async def test_creating_a_set_that_exists_is_refused_and_changes_nothing(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    await rig.activate("workers_0")
    before = await rig.get("/fleet")
    answer = await create(client)
    assert answer.status_code == 409
    page = html.unescape(answer.text)
    assert "'workers' is there already, and nothing was changed" in page
    assert 'value="workers"' in page, "the form keeps what was written"
    assert await rig.get("/fleet") == before
    assert (await rig.document("workers_0"))["Events"] == []


async def test_a_new_set_is_created(rig: Rig, client: httpx.AsyncClient) -> None:
    answer = await create(client, name="others", capacity="2")
    assert answer.status_code == 303, answer.text
    found = await rig.get("/scopes/others")
    assert [each["name"] for each in found["instances"]] == ["others_0", "others_1"]


async def test_what_cannot_be_is_refused_with_its_reason(client: httpx.AsyncClient) -> None:
    assert (await create(client, name="-")).status_code == 422
    assert (await create(client, name="others", capacity="x")).status_code == 422
    answer = await create(client, name="others", capacity="0")
    assert answer.status_code == 422
    assert "at least 1" in answer.text


async def test_resizing_names_who_goes_and_warns_them(rig: Rig, client: httpx.AsyncClient) -> None:
    await rig.activate("workers_0")
    page = await submit(client, "/scale-sets/workers", "/scale-sets/workers/preview", capacity="1")
    assert page.status_code == 200
    assert "workers_1" in page.text
    assert "workers_2" in page.text
    assert (await rig.document("workers_0"))["Events"] == []
    fields = dict(_HIDDEN.findall(page.text))
    done = await client.post("/scale-sets/workers/scale", data=fields)
    assert done.status_code == 303, done.text
    events = (await rig.document("workers_0"))["Events"]
    assert sorted(each["Resources"] for each in events) == [["workers_1"], ["workers_2"]]
    assert len((await rig.get("/scopes/workers"))["instances"]) == 3
