"""What instances of test fleets ask is noted while somebody watches, and else is not."""

from collections.abc import AsyncIterator

import pytest

from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.engine.request_log import KEPT
from tests.operator_api.rig import ME, Rig, running
from tests.support.http_client import http_client


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


async def test_requests_are_noted_while_they_are_watched(rig: Rig) -> None:
    event = await rig.schedule("db")
    await rig.document("db")
    found = await rig.post("/requests/watch", {"for": "5m"})
    assert (found["watchingSeconds"], found["requests"]) == (300, [])
    await rig.post("/faults", {"kind": "duplicate", "on": "poll", "count": 1}, 201)
    await rig.document("db")
    await rig.approve("db", event["id"])
    approved, polled = (await rig.get("/requests"))["requests"]
    assert (polled["fault"], approved["fault"]) == ("duplicate", None)
    assert (polled["instance"], polled["kind"], polled["version"]) == ("db", "events", "2020-07-01")
    assert "httpx" in polled["agent"]
    assert (approved["kind"], approved["events"]) == ("approve", [event["id"]])
    await rig.delete("/requests/watch")
    await rig.document("db")
    found = await rig.get("/requests")
    assert (found["watchingSeconds"], len(found["requests"])) == (0, 2)


async def test_an_approval_without_the_header_has_a_hint(rig: Rig) -> None:
    await rig.post("/requests/watch", {"for": "5m"})
    url = f"{rig.node.metadata_urls[0]}/vm/db/metadata/scheduledevents?api-version=2020-07-01"
    async with http_client() as client:
        answer = await client.post(url, json={"StartRequests": [{"EventId": "A"}]})
    assert answer.status_code == 400
    (noted,) = (await rig.get("/requests"))["requests"]
    assert (noted["kind"], noted["events"]) == ("approve", ["A"])
    assert "--lenient-post" in noted["hint"]


async def test_only_test_fleets_are_watched(rig: Rig) -> None:
    await rig.node.engine.declare([VirtualMachine(name="real", place=Place())], by=ME)
    await rig.post("/requests/watch")
    await rig.document("real")
    await rig.document("db")
    assert [each["instance"] for each in (await rig.get("/requests"))["requests"]] == ["db"]


async def test_without_a_test_fleet_there_is_nothing_to_watch() -> None:
    async with running() as rig:
        for scope in (await rig.get("/fleet"))["scopes"]:
            await rig.delete(f"/scopes/{scope['id'].replace('/', '%2F')}")
        found = await rig.post("/requests/watch", status=409)
        assert found["code"] == "not-a-test-fleet"


@pytest.mark.parametrize("length", ["0s", "2h", "3601s"])
async def test_one_watches_for_up_to_an_hour(rig: Rig, length: str) -> None:
    found = await rig.post("/requests/watch", {"for": length}, 422)
    assert found["pointer"] == "/for"
    assert (await rig.post("/requests/watch", {"for": "1h"}))["watchingSeconds"] == 3600


async def test_only_the_last_ones_are_kept(rig: Rig) -> None:
    await rig.post("/requests/watch")
    for _ in range(KEPT // 4 + 1):
        for name in ("db", "web-0", "web-1", "web-2"):
            await rig.document(name)
    assert len((await rig.get("/requests"))["requests"]) == KEPT
