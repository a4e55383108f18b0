"""Several events are approved at once, after a page that says who is affected."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.operator_api.rig import Rig, running
from tests.portal.reader import reading


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def client(rig: Rig) -> AsyncIterator[httpx.AsyncClient]:
    async with reading(rig) as found:
        yield found.client


async def send(client: httpx.AsyncClient, path: str, *ids: str) -> httpx.Response:
    page = (await client.get("/")).text
    key = page.split('name="form_key" value="')[1].split('"')[0]
    return await client.post(path, data={"form_key": key, "back": "/", "event": list(ids)})


async def phases(rig: Rig) -> dict[str, str]:
    return {each["id"]: each["phase"] for each in (await rig.get("/events"))["events"]}


async def test_the_preview_names_who_is_affected_and_changes_nothing(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    first, second = await rig.schedule("web-0"), await rig.schedule("db")
    page = await send(client, "/events/chosen/preview", first["id"], second["id"])
    assert page.status_code == 200
    assert "Approve 2 events?" in page.text
    assert "Instances affected: 2." in page.text
    assert set((await phases(rig)).values()) == {"scheduled"}


async def test_the_chosen_events_are_approved_and_the_others_wait(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    events = [await rig.schedule(name) for name in ("web-0", "db", "workers_0")]
    chosen = [each["id"] for each in events[:2]]
    answer = await send(client, "/events/chosen/approve", *chosen)
    assert answer.status_code == 303
    assert "2 events are approved" in (await client.get("/")).text
    assert await phases(rig) == {
        events[0]["id"]: "started",
        events[1]["id"]: "started",
        events[2]["id"]: "scheduled",
    }


async def test_one_that_is_gone_does_not_stop_the_others(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    first, second = await rig.schedule("web-0"), await rig.schedule("db")
    await rig.post(f"/events/{first['id']}/cancel", {})
    await send(client, "/events/chosen/approve", first["id"], second["id"])
    said = (await client.get("/")).text
    assert "1 event is approved" in said
    assert f"{first['id'][:8]} is not:" in said
    assert (await phases(rig))[second["id"]] == "started"


async def test_an_event_that_nobody_knows_is_said_and_nothing_is_left_undone(
    rig: Rig, client: httpx.AsyncClient
) -> None:
    known = await rig.schedule("web-0")
    unknown = "00000000-0000-0000-0000-000000000000"
    answer = await send(client, "/events/chosen/preview", unknown, known["id"])
    assert answer.status_code == 303
    assert "no event" in (await client.get("/")).text.lower()


async def test_nothing_chosen_is_said(client: httpx.AsyncClient, rig: Rig) -> None:
    await rig.schedule("web-0")
    assert (await send(client, "/events/chosen/preview")).status_code == 303
    assert "No event that waits was chosen" in (await client.get("/")).text
