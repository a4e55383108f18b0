"""Faults from outside: who may have them, what is refused, and that they leave their traces."""

import asyncio
from typing import Any

import pytest

from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.engine.active_faults import FAULTS_MAX
from fairwarning.engine.protocols import StoreDown
from tests.operator_api.rig import ME, Block, Rig, running
from tests.support.http_client import http_client


async def poll(rig: Rig, name: str = "web-0") -> int:
    url = f"{rig.node.metadata_urls[0]}/vm/{name}/metadata/scheduledevents"
    async with http_client() as client:
        answer = await client.get(
            url, params={"api-version": "2020-07-01"}, headers={"Metadata": "true"}
        )
    return answer.status_code


async def figures(rig: Rig) -> dict[str, float]:
    text = (await rig.api.get(f"{rig.node.control_url}/metrics")).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if 'kind="status"' in line]
    return {name.partition("{")[0]: float(value) for name, value in lines}


async def test_a_fault_strikes_whom_it_is_for_and_as_often_as_asked(rig: Rig) -> None:
    made = await rig.post(
        "/faults", {"kind": "status", "instances": ["web-0"], "status": 500, "count": 2}, 201
    )
    assert [await poll(rig, "web-1"), await poll(rig), await poll(rig)] == [200, 500, 500]
    assert await poll(rig) == 200
    assert made["hits"] == 0
    assert (await rig.get("/faults"))["faults"] == []


async def test_a_fault_is_seen_and_cleared_by_its_id(rig: Rig) -> None:
    kept = await rig.post("/faults", {"kind": "empty"}, 201)
    made = await rig.post("/faults", {"kind": "slow", "delay": "2s", "on": "any"}, 201)
    assert made["delay"] == "PT2S"
    assert made["status"] is None
    await rig.delete(f"/faults/{made['id']}")
    assert (await rig.get("/faults"))["faults"] == [kept]
    assert (await rig.delete(f"/faults/{made['id']}", 404))["code"] == "unknown-fault"
    assert await rig.delete("/faults") == {"cleared": 1}
    assert await rig.delete("/faults") == {"cleared": 0}


async def test_a_window_is_by_the_servers_clock(rig: Rig) -> None:
    begins = (await rig.post("/clock/advance", {"by": "0s"}))["now"]
    made = await rig.post("/faults", {"kind": "status", "for": "1m"}, 201)
    assert made["until"] > begins
    assert await poll(rig) == 503
    await rig.post("/clock/advance", {"by": "1m"})
    assert await poll(rig) == 200


async def test_setting_and_clearing_are_in_the_history_with_who_and_why(rig: Rig) -> None:
    made = await rig.post("/faults?why=drill", {"kind": "status", "status": 429, "count": 1}, 201)
    await rig.delete(f"/faults/{made['id']}", why="enough")
    cleared, was_set = (await rig.get("/history", limit=2))["entries"]
    assert was_set["text"].startswith(f"fault {made['id']} set: status 429 on poll of every")
    assert (was_set["by"], was_set["why"]) == ("operator:local", "drill")
    assert cleared["text"] == f"fault {made['id']} cleared"
    assert cleared["why"] == "enough"


async def test_what_is_set_and_what_struck_is_in_the_metrics(rig: Rig) -> None:
    await rig.post("/faults", {"kind": "status"}, 201)
    await poll(rig)
    await poll(rig)
    assert await figures(rig) == {
        "fairwarning_faults_set": 1,
        "fairwarning_faults_struck_total": 2,
    }
    await rig.delete("/faults")
    assert (await figures(rig))["fairwarning_faults_set"] == 0


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"kind": "explosion"}, "/kind"),
        ({"kind": "status", "status": 418}, "/status"),
        ({"kind": "status", "count": 0}, "/count"),
        ({"kind": "status", "probability": 0}, "/probability"),
        ({"kind": "status", "probability": 1.5}, "/probability"),
        ({"kind": "slow", "delay": "121s"}, "/delay"),
        ({"kind": "slow", "for": "0s"}, "/for"),
        ({"kind": "slow", "for": "1m", "until": "2099-01-01T00:00:00Z"}, "/for"),
        ({"kind": "slow", "until": "2001-01-01T00:00:00Z"}, "/until"),
        ({"kind": "slow", "from": "tomorrow"}, "/from"),
        ({"kind": "stale", "on": "approve"}, "/on"),
        ({"kind": "stale", "on": "instance"}, "/on"),
        ({"kind": "status", "on": "everything"}, "/on"),
    ],
)
async def test_what_is_out_of_range_is_refused_and_sets_nothing(
    rig: Rig, body: dict[str, Any], pointer: str
) -> None:
    problem = await rig.post("/faults", body, 422)
    assert problem["pointer"] == pointer
    assert (await rig.get("/faults"))["faults"] == []


async def test_only_a_test_fleet_can_have_faults(rig: Rig) -> None:
    await rig.node.engine.declare([VirtualMachine(name="real", place=Place())], by=ME)
    problem = await rig.post("/faults", {"kind": "status", "instances": ["real"]}, 409)
    assert problem["code"] == "not-a-test-fleet"
    assert "real" in problem["detail"]
    assert (await rig.post("/faults", {"kind": "status", "instances": ["x"]}, 404))["code"]
    await rig.post("/faults", {"kind": "status"}, 201)
    assert [await poll(rig, "real"), await poll(rig)] == [200, 503]


async def test_a_fleet_without_test_scopes_has_none() -> None:
    async with running() as rig:
        for scope in (await rig.get("/fleet"))["scopes"]:
            await rig.api.delete(f"/scopes/{scope['id'].replace('/', '%2F')}")
        await rig.node.engine.declare([VirtualMachine(name="real", place=Place())], by=ME)
        problem = await rig.post("/faults", {"kind": "status"}, 409)
        assert problem["code"] == "not-a-test-fleet"


async def test_there_is_a_limit(rig: Rig) -> None:
    for _ in range(FAULTS_MAX):
        await rig.post("/faults", {"kind": "empty"}, 201)
    assert (await rig.post("/faults", {"kind": "empty"}, 409))["code"] == "too-many-faults"


async def test_faults_that_are_over_leave_room_for_others(rig: Rig) -> None:
    for _ in range(FAULTS_MAX):
        await rig.post("/faults", {"kind": "empty", "for": "1m"}, 201)
    await rig.post("/clock/advance", {"by": "1m"})
    made = await rig.post("/faults", {"kind": "empty"}, 201)
    assert [each["id"] for each in (await rig.get("/faults"))["faults"]] == [made["id"]]


async def test_a_fault_that_could_not_be_noted_is_not_set(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object, **__: object) -> None:
        raise StoreDown("gone")

    monkeypatch.setattr(rig.node.store, "keep", down)
    await rig.post("/faults", {"kind": "status"}, 503)
    assert (await rig.get("/faults"))["faults"] == []
    assert await poll(rig) == 200


async def test_a_fault_whose_end_could_not_be_noted_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told that it failed may ask again, and the history has no gap."""
    made = await rig.post("/faults", {"kind": "status"}, 201)

    async def down(*_: Any, **__: Any) -> None:
        raise StoreDown("switched off by the test")

    with monkeypatch.context() as outage:
        outage.setattr(rig.node.store, "keep", down)
        await rig.delete(f"/faults/{made['id']}", 503)
        await rig.delete("/faults", 503)
    assert [each["id"] for each in (await rig.get("/faults"))["faults"]] == [made["id"]]
    assert (await rig.delete("/faults"))["cleared"] == 1


async def test_a_window_is_not_over_before_it_begins(rig: Rig) -> None:
    now = (await rig.get("/clock"))["now"]
    for body in (
        {"until": now},
        {"from": "2099-01-02T00:00:00Z", "until": "2099-01-01T00:00:00Z"},
        {"from": "2099-01-02T00:00:00Z", "until": "2099-01-02T00:00:00Z"},
    ):
        problem = await rig.post("/faults", {"kind": "status", **body}, 422)
        assert (problem["code"], problem["pointer"]) == ("fault-invalid", "/until")
    body = {"kind": "status", "from": "2099-01-01T00:00:00Z", "for": "1m"}
    assert (await rig.post("/faults", body, 201))["until"] == "2099-01-01T00:01:00.000Z"


async def test_clearing_all_leaves_what_is_set_meanwhile(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its line of history is the newer one."""
    await rig.post("/faults", {"kind": "status"}, 201)
    block = Block(monkeypatch, rig.node.store, "keep")
    clearing = asyncio.create_task(rig.delete("/faults"))
    await block.reached.wait()
    newer = await rig.post("/faults", {"kind": "empty"}, 201)
    block.open()
    assert await clearing == {"cleared": 1}
    assert (await rig.get("/faults"))["faults"] == [newer]


async def test_a_namesake_in_a_test_fleet_makes_no_test_instance(rig: Rig) -> None:
    for group, test in (("rehearsal", True), ("production", False)):
        place = Place(test=test, resource_group=group)
        await rig.node.engine.declare([VirtualMachine(name="twin", place=place)], by=ME)
    body = {"kind": "status", "instances": ["production/vm/twin/twin"]}
    assert (await rig.post("/faults", body, 409))["code"] == "not-a-test-fleet"
    body["instances"] = ["rehearsal/vm/twin/twin"]
    assert (await rig.post("/faults", body, 201))["instances"] == ["twin"]
