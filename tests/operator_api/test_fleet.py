"""The fleet through the API: declared, changed, removed, and refused with the line."""

from typing import Any

from tests.operator_api.rig import Rig

FILE = """
test = true

[[vm]]
name = "cache"
addresses = ["10.0.0.5"]

[[availability_set]]
name = "front"
update_domains = 2
instances = [
  { name = "front-0", addresses = ["10.0.0.10"] },
  { name = "front-1" },
]
"""
TOML = {"Content-Type": "application/toml"}


async def put(rig: Rig, text: str, status: int = 200, **parameters: Any) -> Any:
    answer = await rig.api.put("/fleet", content=text, headers=TOML, params=parameters)
    return Rig.check(answer, status)


async def names(rig: Rig) -> list[str]:
    scopes = (await rig.get("/fleet"))["scopes"]
    return sorted(each["name"] for scope in scopes for each in scope["instances"])


async def test_a_plan_changes_nothing_and_applying_does_what_it_said(rig: Rig) -> None:
    before = await names(rig)
    answer = await rig.api.post("/fleet/plan", content=FILE, headers=TOML)
    planned = Rig.check(answer, 200)
    assert await names(rig) == before
    assert await put(rig, FILE) == planned
    assert await names(rig) == sorted([*before, "cache", "front-0", "front-1"])
    assert (await put(rig, FILE))["changes"] == []
    assert (await rig.document("cache"))["Events"] == []


async def test_what_a_file_no_longer_names_goes_and_what_others_made_stays(rig: Rig) -> None:
    made_otherwise = await names(rig)
    await put(rig, FILE)
    shorter = (
        FILE.replace('  { name = "front-1" },\n', "")
        .replace("[[vm]]", "#[[vm]]")
        .replace('name = "cache"', "#")
        .replace('addresses = ["10.0.0.5"]', "#")
    )
    changes = (await put(rig, shorter))["changes"]
    assert {each["action"] for each in changes} == {"remove"}
    assert await names(rig) == sorted([*made_otherwise, "front-0"])


async def test_an_instance_with_a_pending_event_is_removed_only_by_force(rig: Rig) -> None:
    await put(rig, FILE)
    event = await rig.schedule("front-1")
    shorter = FILE.replace('  { name = "front-1" },\n', "")
    problem = await put(rig, shorter, 409)
    assert problem["code"] == "instance-has-event"
    assert event["id"] in problem["detail"]
    assert "front-1" in await names(rig)
    await put(rig, shorter, force="true")
    assert "front-1" not in await names(rig)
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "cancelled"


async def test_a_mistake_names_its_line_and_changes_nothing(rig: Rig) -> None:
    before = await names(rig)
    for text, line in (
        (FILE.replace("update_domains = 2", 'update_domains = "two"'), 10),
        (FILE.replace("update_domains = 2", "update_domain = 2"), 10),
        (FILE.replace("10.0.0.10", "10.0.0.999"), 12),
        (FILE.replace("10.0.0.10", "10.0.0.5"), 12),
        (FILE + "[[vm]\n", 15),
    ):
        problem = await put(rig, text, 422)
        assert (problem["code"], problem["line"]) == ("fleet-invalid", line), problem
    assert await names(rig) == before


async def test_all_mistakes_come_at_once(rig: Rig) -> None:
    text = FILE.replace("update_domains = 2", "update_domain = 2").replace("10.0.0.10", "10.0.0.x")
    problem = await put(rig, text, 422)
    assert [each["line"] for each in problem["problems"]] == [10, 12]
    first = problem["problems"][0]
    assert first == {key: problem[key] for key in ("detail", "line", "pointer")}
    wrong = await rig.post("/fleet", {"vm": [{"nam": "x"}, {"name": "-"}]}, 422)
    assert [set(each) for each in wrong["problems"]] == [{"detail", "pointer"}] * 2
    assert [each["pointer"] for each in wrong["problems"]] == ["/vm/0/nam", "/vm/1/name"]


async def test_json_declares_one_resource_and_leaves_the_others(rig: Rig) -> None:
    before = await names(rig)
    changed = await rig.post("/fleet", {"vm": [{"name": "mail", "addresses": ["10.9.9.9"]}]})
    assert [each["action"] for each in changed["changes"]][-1] == "add"
    assert await names(rig) == sorted([*before, "mail"])
    wrong = await rig.post("/fleet", {"vm": [{"nam": "x"}]}, 422)
    assert wrong["pointer"].startswith("/vm/0")


async def test_an_instance_and_a_scope_can_be_removed_by_name(rig: Rig) -> None:
    await rig.delete("/instances/web-3")
    await rig.delete("/scopes/workers")
    left = await names(rig)
    assert left == ["db", "web-0", "web-1", "web-2"]
    assert (await rig.get("/scopes/workers", 404))["code"] == "unknown-scope"


async def test_names_that_fit_several_are_refused_with_the_candidates(rig: Rig) -> None:
    fleet = {"cloud_service": [{"name": each, "roles": {"Web": 1}} for each in ("a", "b")]}
    await rig.post("/fleet", fleet)
    problem = await rig.get("/instances/Web_IN_0", 409)
    assert problem["code"] == "ambiguous-name"
    assert len(problem["candidates"]) == 2
    assert (await rig.get("/instances/b%2FWeb_IN_0"))["scope"].endswith("cloud-service/b")


async def test_search_finds_by_scope_and_by_instance(rig: Rig) -> None:
    found = (await rig.get("/fleet", search="WEB-2"))["scopes"]
    assert [each["name"] for each in found] == ["web"]
    pages, after = [], None
    while True:
        page = await rig.get("/fleet", limit=1, **({"after": after} if after else {}))
        pages += [each["name"] for each in page["scopes"]]
        after = page["next"]
        if after is None:
            break
    assert sorted(pages) == ["db", "web", "workers"]


async def test_a_declared_fleet_is_in_the_history_with_who(rig: Rig) -> None:
    await put(rig, FILE)
    entry = (await rig.get("/history"))["entries"][0]
    assert (entry["kind"], entry["by"]) == ("InstancesAdded", "operator:local")
