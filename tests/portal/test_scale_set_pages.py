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
    assert 'aria-describedby="name-taken"' in page, "the field itself says so"
    assert await rig.get("/fleet") == before
    assert (await rig.document("workers_0"))["Events"] == []


async def test_a_new_set_is_created(rig: Rig, client: httpx.AsyncClient) -> None:
    answer = await create(client, name="others", capacity="2")
    assert answer.status_code == 303, answer.text
    found = await rig.get("/scopes/others")
    assert [each["name"] for each in found["instances"]] == ["others_0", "others_1"]


async def review(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await submit(client, "/scale-sets/new", "/scale-sets/new/review", **{**FORM, **fields})


async def test_the_review_shows_all_that_will_be_made_and_makes_nothing(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    before = await rig.get("/fleet")
    answer = await review(client, name="others", capacity="150", resource_group="shop",
                          location="westeurope", termination="on", delay="7")  # fmt: skip
    assert answer.status_code == 200
    page = html.unescape(answer.text)
    for each in ("shop", "westeurope", "others_0, others_1", "and 145 more", "<dd>2</dd>", "<dd>7"):
        assert each in page
    assert await rig.get("/fleet") == before
    made = await client.post("/scale-sets/new", data=dict(_HIDDEN.findall(answer.text)))
    assert made.status_code == 303, made.text
    found = (await rig.get("/fleet", search="others"))["scopes"]
    assert sum(len(each["instances"]) for each in found) == 150
    assert {(each["resourceGroup"], each["location"]) for each in found} == {("shop", "westeurope")}
    assert {each["terminateNotice"] for each in found} == {"PT7M"}
    assert (await client.get(made.headers["location"])).status_code in (200, 409)


async def test_the_review_can_be_left_to_change_what_was_written(client: httpx.AsyncClient) -> None:
    answer = await review(client, name="others", location="westeurope", change="1")
    assert answer.status_code == 200
    assert 'value="others"' in answer.text
    assert 'value="westeurope"' in answer.text


async def test_the_review_refuses_a_name_that_exists_and_what_cannot_be(
    client: httpx.AsyncClient,
) -> None:
    taken = await review(client, name="workers")
    assert taken.status_code == 409
    assert 'aria-describedby="name-taken"' in taken.text
    assert (await review(client, name="workers", resource_group="other")).status_code == 200
    for fields in ({"name": "-"}, {"capacity": "x"}, {"capacity": "1001"}, {"delay": "99"}):
        wanted = {"name": "others", "termination": "on", **fields}
        assert (await review(client, **wanted)).status_code == 422
    assert (await review(client, name="flexi", orchestration="flexible")).status_code == 200


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
