"""The search over everything, and what is at no address."""

from collections.abc import AsyncIterator

import pytest

from fairwarning.core.resources import Place, VirtualMachine
from tests.operator_api.rig import ME, Rig, running
from tests.portal.reader import Reader, reading


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def reader(rig: Rig) -> AsyncIterator[Reader]:
    async with reading(rig) as found:
        yield found


async def goes_to(reader: Reader, text: str) -> str:
    answer = await reader.client.get("/search", params={"q": text})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_the_name_of_an_instance_leads_to_its_marked_row(reader: Reader) -> None:
    place = await goes_to(reader, "web-2")
    assert place.endswith("/availability-set/web?instance=web-2#instance-web-2")
    page = await reader.see(place.partition("#")[0])
    assert '<tr id="instance-web-2" class="marked">' in page
    assert page.count('class="marked"') == 1


async def test_the_name_of_a_scope_and_an_event_lead_to_their_pages(
    rig: Rig, reader: Reader
) -> None:
    event = await rig.schedule("web-0")
    assert (await goes_to(reader, "workers")).endswith("/scale-set/workers")
    assert await goes_to(reader, event["id"][:8].lower()) == f"/events/{event['id']}"


async def test_a_set_with_several_placement_groups_is_found_as_one(
    rig: Rig, reader: Reader
) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "large", "capacity": 250}]})
    place = await goes_to(reader, "large")
    assert place.startswith("/scale-sets/")
    assert place.endswith("/scale-set/large")
    assert (await reader.see("/search?q=larg")).count('href="/scale-sets/') >= 2
    row = await goes_to(reader, "large_249")
    assert '<tr id="instance-large_249" class="marked">' in await reader.see(row.partition("#")[0])


async def test_a_part_of_a_name_lists_what_fits(reader: Reader) -> None:
    page = await reader.see("/search?q=WORK")
    assert all(f"workers_{n}" in page for n in range(3))
    assert "web-0" not in page
    assert "No instance, machine, set or event is called “nothing”" in await reader.see(
        "/search?q=nothing"
    )
    assert "Write a part of the name" in await reader.see("/search")


async def test_a_browser_gets_a_page_where_nothing_is_and_a_program_json(reader: Reader) -> None:
    page = await reader.see("/no/such/page", 404, Accept="text/html,*/*;q=0.8")
    assert "<!doctype html>" in page
    assert 'href="/"' in page
    for path in ("/no/such/page", "/api/v1/nothing"):
        answer = await reader.client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code == 404
        assert answer.json()["code"] == "no-such-path"
    answer = await reader.client.get("/api/v1/nothing", headers={"Accept": "text/html"})
    assert answer.json()["code"] == "no-such-path"


async def test_no_page_shows_a_backtick(rig: Rig, reader: Reader) -> None:
    for path in ("/", "/plan", "/settings", "/rehearse", "/fleet"):
        assert "`" not in await reader.see(path)
    page = (await reader.client.get("/settings")).text
    assert "<code>fairwarning notification add</code>" in page


async def test_capital_letters_make_no_difference(rig: Rig, reader: Reader) -> None:
    vm = VirtualMachine(name="DB-Main", place=Place())
    await rig.node.engine.declare([vm], by=ME)
    for text in ("db-m", "DB-M", "MAIN"):
        assert '/default/vm/DB-Main">DB-Main</a>' in await reader.see(f"/search?q={text}"), text
