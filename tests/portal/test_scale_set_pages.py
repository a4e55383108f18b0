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
    assert page.count("'workers' is there already, and nothing was changed") == 1
    assert 'value="workers"' in page, "the form keeps what was written"
    assert 'aria-describedby="name-taken"' in page, "the field itself says so"
    assert await rig.get("/fleet") == before
    assert (await rig.document("workers_0"))["Events"] == []


async def test_a_new_set_is_created(rig: Rig, client: httpx.AsyncClient) -> None:
    answer = await create(client, name="others", capacity="2")
    assert answer.status_code == 303, answer.text
    found = await rig.get("/scopes/others")
    assert [each["name"] for each in found["instances"]] == ["others_0", "others_1"]


async def test_spaces_around_what_is_written_do_not_count(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    around = {"name": " others ", "resource_group": " shop ", "location": " local "}
    answer = await create(client, capacity="1", **around)
    assert answer.status_code == 303, answer.text
    found = await rig.get("/scopes/others")
    assert found["id"].split("/")[1:] == ["shop", "scale-set", "others", "0"]
    assert found["location"] == "local"


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
    page = (await client.get(made.headers["location"])).text
    assert "1 to 25 of 150" in page
    assert page.count('<tr id="instance-') == 25


async def test_a_set_is_one_row_whatever_its_placement_groups(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "large", "capacity": 250}]})
    for page in ("/scale-sets", "/fleet"):
        assert (await client.get(page)).text.count(">large<") == 1, page
    assert (await client.get("/plan")).text.count("/scale-set/large") == 1
    rows = (await rig.get("/resources", search="large"))["resources"]
    assert [(each["name"], each["instances"], len(each["placementGroups"])) for each in rows] == [
        ("large", 250, 3)
    ]
    page = (await client.get("/scale-sets/large?instance=large_249")).text
    assert '<tr id="instance-large_249" class="marked">' in page
    assert page.count('href="/fleet/') == 3, "the placement groups are a detail of the page"


async def test_an_empty_set_can_be_created_and_has_its_page(client: httpx.AsyncClient) -> None:
    answer = await create(client, name="others", capacity="0")
    assert answer.status_code == 303
    assert "The set has no instances" in (await client.get(answer.headers["location"])).text


async def test_deleting_a_set_names_who_goes_and_warns_them(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    await rig.activate("workers_0")
    path = "/scale-sets/workers/delete"
    page = await submit(client, "/scale-sets/workers", f"{path}/preview")
    assert page.status_code == 200
    assert page.text.count("5 min") == 3
    assert (await rig.get("/events"))["events"] == []
    done = await client.post(path, data=dict(_HIDDEN.findall(page.text)))
    assert done.headers["location"] == "/scale-sets"
    assert (
        "workers is being deleted: 3 instances are warned first"
        in (await client.get("/scale-sets")).text
    )
    assert {each["type"] for each in (await rig.get("/events"))["events"]} == {"Terminate"}
    await rig.post("/clock/advance", {"by": "6m"})
    assert (await rig.get("/resources", kind="scale-set"))["resources"] == []


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
    assert (await create(client, name="others", capacity="1001")).status_code == 422


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
