"""A scale set without instances is a set in every list, until somebody deletes it."""

from typing import Any

from tests.operator_api.rig import Rig
from tests.portal.reader import reading

SET = "00000000-0000-0000-0000-000000000000/default/scale-set/workers"


async def empty(rig: Rig) -> None:
    await rig.post("/scopes/workers/scale", {"capacity": 0}, 202)
    await rig.post("/clock/advance", {"by": "6m"})


async def found(rig: Rig) -> list[Any]:
    return [each for each in (await rig.get("/fleet"))["scopes"] if each["name"] == "workers"]


async def test_a_set_that_was_scaled_to_none_is_shown_with_capacity_0(rig: Rig) -> None:
    await empty(rig)
    (scope,) = await found(rig)
    assert (scope["id"], scope["capacity"], scope["instances"]) == (f"{SET}/0", 0, [])
    assert (await rig.get("/fleet", search="work"))["scopes"] == [scope]
    assert await rig.get("/scopes/workers") == scope


async def test_the_events_and_the_history_of_an_emptied_set_are_found_by_its_name(rig: Rig) -> None:
    await rig.activate("workers_0")
    await empty(rig)
    past = await rig.get("/events", scope="workers")
    assert {each["type"] for each in past["events"]} == {"Terminate"}
    history = await rig.get("/history", scope="workers")
    assert any("workers_0" in each["text"] for each in history["entries"])


async def test_a_set_of_several_groups_is_shown_once_when_it_is_empty(rig: Rig) -> None:
    await rig.post("/scopes/workers/scale", {"capacity": 120}, 202)
    await empty(rig)
    (scope,) = await found(rig)
    assert scope["id"] == f"{SET}/0"
    assert (await rig.get("/scopes/workers"))["capacity"] == 0


async def test_an_empty_group_is_not_shown_beside_one_with_instances(rig: Rig) -> None:
    await rig.post("/scopes/workers/scale", {"capacity": 120}, 202)
    await rig.post("/scopes/workers/scale", {"capacity": 5}, 202)
    await rig.post("/clock/advance", {"by": "6m"})
    assert [each["id"] for each in await found(rig)] == [f"{SET}/0"]


async def test_an_emptied_set_can_be_deleted_and_is_then_gone(rig: Rig) -> None:
    await empty(rig)
    plan = await rig.delete("/scopes/workers")
    assert [each["action"] for each in plan["changes"]] == ["remove"]
    assert await found(rig) == []
    assert (await rig.get("/scopes/workers", 404))["code"] == "unknown-scope"
    gone = await rig.post("/scopes/workers/scale", {"capacity": 1}, 404)
    assert gone["code"] == "unknown-scope"


async def test_a_deleted_set_is_gone_once_its_last_instance_is(rig: Rig) -> None:
    await rig.activate("workers_0")
    await rig.delete("/scopes/workers")
    assert len(await found(rig)) == 1
    await rig.post("/clock/advance", {"by": "6m"})
    assert await found(rig) == []


async def test_deleting_the_last_instance_leaves_the_set(rig: Rig) -> None:
    await rig.post("/scopes/workers/scale", {"capacity": 1}, 202)
    await rig.post("/clock/advance", {"by": "6m"})
    await rig.delete("/instances/workers_0")
    assert (await rig.get("/scopes/workers"))["capacity"] == 0


async def test_a_set_that_a_declaration_makes_with_no_instances_is_there(rig: Rig) -> None:
    fleet = {"scale_set": [{"name": "idle", "capacity": 0, "terminate_notice": "5m"}]}
    await rig.post("/fleet", fleet)
    assert (await rig.get("/scopes/idle"))["capacity"] == 0
    done = await rig.post("/scopes/idle/scale", {"capacity": 1}, 202)
    assert done["added"] == ["idle_0"]
    assert (await rig.get("/instances/idle_0"))["terminateNotice"] == "PT5M"


async def test_a_file_that_leaves_an_emptied_set_of_a_file_out_removes_it(rig: Rig) -> None:
    fleet = {"test": True, "scale_set": [{"name": "idle", "capacity": 0}]}
    made = rig.check(await rig.api.put("/fleet", json=fleet), 200)
    assert [each["action"] for each in made["changes"] if "idle" in each["what"]] == ["add"]
    without = {"test": True, "vm": [{"name": "db"}]}
    done = rig.check(await rig.api.put("/fleet", json=without), 200)
    assert [each["action"] for each in done["changes"] if "idle" in each["what"]] == ["remove"]
    assert (await rig.get("/scopes/idle", 404))["code"] == "unknown-scope"
    again = rig.check(await rig.api.put("/fleet", json=fleet), 200)
    assert [each["action"] for each in again["changes"] if "idle" in each["what"]] == ["add"]


async def test_no_event_can_be_scheduled_in_an_empty_set(rig: Rig) -> None:
    await empty(rig)
    body = {"type": "Reboot", "scope": "workers", "updateDomain": 0}
    refused = await rig.post("/events", body, 422)
    assert (refused["code"], refused["detail"]) == (
        "no-target",
        "'workers' has no instances; scale it up first",
    )


async def test_the_portal_lists_an_emptied_set(rig: Rig) -> None:
    await empty(rig)
    async with reading(rig) as reader:
        for page in ("/", "/fleet", "/scale-sets", f"/scale-sets/{SET}/0"):
            answer = await reader.client.get(page)
            assert answer.status_code == 200, (page, answer.text)
        assert "workers" in (await reader.client.get("/scale-sets")).text


async def test_a_declaration_keeps_the_model_of_an_emptied_set(rig: Rig) -> None:
    await rig.post("/scopes/workers/model", {"reimageNotice": "PT15M"})
    await empty(rig)
    resource = {"name": "workers", "capacity": 1, "terminate_notice": "5m"}
    await rig.post("/fleet", {"scale_set": [resource]})
    instance = await rig.get("/instances/workers_3")
    assert (instance["terminateNotice"], instance["reimageNotice"]) == ("PT5M", "PT15M")
