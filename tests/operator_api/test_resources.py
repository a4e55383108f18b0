"""Resources through the API: one row for each VM and set, counted, found and removed as a whole."""

from typing import Any

from tests.operator_api.rig import Rig


async def rows(rig: Rig, **query: Any) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in (await rig.get("/resources", **query))["resources"]}


async def test_each_resource_is_one_row_with_its_counts(rig: Rig) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "large", "capacity": 250}]})
    found = await rows(rig)
    assert {name: each["instances"] for name, each in found.items()} == {
        "db": 1, "large": 250, "web": 4, "workers": 3,
    }  # fmt: skip
    assert found["large"]["id"].endswith("/scale-set/large")
    assert [each[-2:] for each in found["large"]["placementGroups"]] == ["/0", "/1", "/2"]
    assert (found["workers"]["terminateNotice"], found["web"]["terminateNotice"]) == ("PT5M", None)


async def test_a_row_counts_who_has_an_event_and_who_asks(rig: Rig) -> None:
    event = await rig.schedule("web-0", duration="1h")
    await rig.schedule("web-1")
    await rig.post(f"/events/{event['id']}/approve")
    web = (await rows(rig))["web"]
    assert (web["started"], web["scheduled"], web["pendingEvents"]) == (1, 1, 2)
    assert web["polling"] == 0
    await rig.document("web-2")
    assert (await rows(rig))["web"]["polling"] == 1


async def test_who_has_a_started_and_a_scheduled_event_is_counted_as_started(rig: Rig) -> None:
    event = await rig.schedule("web-0", duration="1h")
    await rig.post(f"/events/{event['id']}/approve")
    await rig.schedule("web-0", type="Redeploy")
    web = (await rows(rig))["web"]
    assert (web["started"], web["scheduled"], web["pendingEvents"]) == (1, 0, 2)


async def test_pages_end_where_the_resources_do(rig: Rig) -> None:
    seen: list[str] = []
    after = None
    for _ in range(3):
        query = {"limit": 1} if after is None else {"limit": 1, "after": after}
        page = await rig.get("/resources", **query)
        seen += [each["name"] for each in page["resources"]]
        after = page["next"]
    assert after is None
    assert seen == ["web", "workers", "db"]


async def test_resources_are_found_by_kind_by_name_and_by_an_instance(rig: Rig) -> None:
    assert set(await rows(rig, kind="scale-set")) == {"workers"}
    assert set(await rows(rig, search="WEB")) == {"web"}
    assert set(await rows(rig, search="workers_2")) == {"workers"}
    assert await rows(rig, search="nothing") == {}


async def test_new_and_removed_resources_are_followed(rig: Rig) -> None:
    await rows(rig)
    await rig.post("/fleet", {"vm": [{"name": "new"}]})
    assert "new" in await rows(rig)
    await rig.delete("/resources/new")
    assert "new" not in await rows(rig)


async def test_a_set_is_removed_with_all_its_placement_groups(rig: Rig) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "large", "capacity": 150}]})
    planned = await rig.delete("/resources/large", preview=True)
    assert [each["scope"][-8:] for each in planned["changes"]] == ["/large/0", "/large/1"]
    assert (await rows(rig))["large"]["instances"] == 150
    await rig.delete("/resources/large")
    assert "large" not in await rows(rig)
    await rig.delete("/resources/large", 404)


async def test_a_removed_set_warns_whoever_has_a_notice(rig: Rig) -> None:
    await rig.activate("workers_0")
    done = await rig.delete("/resources/workers")
    assert len(done["terminates"]) == 3
    assert (await rows(rig))["workers"]["instances"] == 3
    await rig.post("/clock/advance", {"by": "6m"})
    assert "workers" not in await rows(rig)


async def test_a_rollout_takes_a_set_by_its_name(rig: Rig) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "large", "capacity": 150}]})
    planned = await rig.post("/rollouts/plan", {"type": "Reboot", "scopes": ["large"]})
    assert {each["scope"][-8:] for each in planned["steps"]} == {"/large/0", "/large/1"}


async def test_the_plan_of_a_smaller_size_says_when_each_goes(rig: Rig) -> None:
    before = await rig.post("/scopes/workers/scale/plan", {"capacity": 2})
    assert [(each["name"], each["terminateNotice"]) for each in before["leaving"]] == [
        ("workers_2", None)
    ]
    await rig.activate("workers_0")
    after = await rig.post("/scopes/workers/scale/plan", {"capacity": 2})
    assert [each["terminateNotice"] for each in after["leaving"]] == ["PT5M"]
    assert after["leaving"][0]["notBefore"] > before["leaving"][0]["notBefore"]
