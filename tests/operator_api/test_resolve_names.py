"""What a name means: whole ids, endings of them, names of resources; and never a part of a word."""

from typing import Any
from urllib.parse import quote

import pytest_asyncio

from tests.operator_api.rig import Rig

SUB = "00000000-0000-0000-0000-000000000000"
WEB = f"{SUB}/default/availability-set/web"
OTHER_WEB = f"{SUB}/other/availability-set/web"
WORKERS = f"{SUB}/default/scale-set/workers/0"
FLEET: dict[str, Any] = {
    "test": True,
    "vm": [{"name": "db2"}, {"name": "0"}, {"name": "twin"}],
    "availability_set": [
        {
            "name": "web",
            "resource_group": "other",
            "instances": [{"name": "web-0"}, {"name": "only-here"}],
        },
        {"name": "my-web", "instances": [{"name": "my-web-0"}]},
        {"name": "twin", "instances": [{"name": "twin"}]},
    ],
}


@pytest_asyncio.fixture
async def named(rig: Rig) -> Rig:
    await rig.post("/fleet", FLEET)
    return rig


async def scope_of(rig: Rig, name: str) -> str:
    """The id of the scope that is meant, or the code of the refusal."""
    answer = await rig.api.get(f"/scopes/{quote(name, safe='')}")
    return str(answer.json().get("code") or answer.json()["id"])


async def instance_of(rig: Rig, name: str) -> str:
    answer = await rig.api.get(f"/instances/{quote(name, safe='')}")
    found = answer.json()
    return str(found.get("code") or f"{found['scope']}/{found['name']}")


async def test_a_scope_is_found_by_its_id_an_ending_of_it_or_its_resource(named: Rig) -> None:
    for name, meant in {
        WEB: WEB,
        OTHER_WEB: OTHER_WEB,
        "default/availability-set/web": WEB,
        "other/availability-set/web": OTHER_WEB,
        "my-web": f"{SUB}/default/availability-set/my-web",
        "workers": WORKERS,
        "workers/0": WORKERS,
        "scale-set/workers": WORKERS,
        "default/scale-set/workers/0": WORKERS,
        f"{SUB}/default/scale-set/workers": WORKERS,
        "db": f"{SUB}/default/vm/db",
        "vm/0": f"{SUB}/default/vm/0",
    }.items():
        assert await scope_of(named, name) == meant, name


async def test_a_scope_is_not_found_by_half_a_word_or_in_another_case(named: Rig) -> None:
    for name in (
        "we",
        "eb",
        "WEB",
        "Default/availability-set/web",
        WEB[:-1],
        WEB[1:],
        f"{WEB} ",
        f"/{WEB}",
        "availability-set",
        "workers/1",
        "orkers",
        "scale-set/workers/",
        "web-0",
        "%",
        "_eb",
    ):
        assert await scope_of(named, name) == "unknown-scope", name


async def test_a_scope_that_several_fit_is_nobodys(named: Rig) -> None:
    for name, candidates in {
        "web": [WEB, OTHER_WEB],
        "availability-set/web": [WEB, OTHER_WEB],
        "twin": [f"{SUB}/default/availability-set/twin", f"{SUB}/default/vm/twin"],
    }.items():
        problem = await named.get(f"/scopes/{quote(name, safe='')}", 409)
        assert (problem["code"], problem["candidates"]) == ("ambiguous-name", candidates), name
    assert await scope_of(named, "0") == "ambiguous-name", "a VM, and the end of the set's id"


async def test_an_instance_is_found_by_its_name_with_or_without_its_scope(named: Rig) -> None:
    for name, meant in {
        "web-1": f"{WEB}/web-1",
        "only-here": f"{OTHER_WEB}/only-here",
        "other/availability-set/web/web-0": f"{OTHER_WEB}/web-0",
        f"{WEB}/web-0": f"{WEB}/web-0",
        "web/web-1": f"{WEB}/web-1",
        "my-web/my-web-0": f"{SUB}/default/availability-set/my-web/my-web-0",
        "workers/workers_0": f"{WORKERS}/workers_0",
        "workers/0/workers_0": f"{WORKERS}/workers_0",
        "db": f"{SUB}/default/vm/db/db",
        "0": f"{SUB}/default/vm/0/0",
        "vm/twin/twin": f"{SUB}/default/vm/twin/twin",
    }.items():
        assert await instance_of(named, name) == meant, name


async def test_an_instance_is_not_found_by_half_a_word_another_case_or_another_scope(
    named: Rig,
) -> None:
    for name in ("web-", "eb-1", "WEB-1", "db/web-1", "eb/web-1", "web/my-web-0", "web/"):
        assert await instance_of(named, name) == "unknown-instance", name


async def test_an_instance_that_several_fit_is_nobodys(named: Rig) -> None:
    for name, candidates in {
        "web-0": [f"{WEB}/web-0", f"{OTHER_WEB}/web-0"],
        "web/web-0": [f"{WEB}/web-0", f"{OTHER_WEB}/web-0"],
        "twin": [f"{SUB}/default/availability-set/twin/twin", f"{SUB}/default/vm/twin/twin"],
    }.items():
        problem = await named.get(f"/instances/{quote(name, safe='')}", 409)
        assert (problem["code"], problem["candidates"]) == ("ambiguous-name", candidates), name
        body = {"type": "Freeze", "targets": [name]}
        assert (await named.post("/events", body, 409))["code"] == "ambiguous-name"


async def test_a_scale_set_is_found_by_any_of_its_names_also_when_it_is_empty(rig: Rig) -> None:
    for name in ("workers", "workers/0", "scale-set/workers", WORKERS, WORKERS[:-2]):
        path = f"/scopes/{quote(name, safe='')}/scale/plan"
        assert (await rig.post(path, {"capacity": 4}))["adds"] == 1, name
    for name in ("orkers", "WORKERS", "workers/1", "workers_0"):
        path = f"/scopes/{quote(name, safe='')}/scale/plan"
        assert (await rig.post(path, {"capacity": 4}, 404))["code"] == "unknown-scope", name
    await rig.post("/scopes/workers/scale", {"capacity": 0}, 202)
    await rig.post("/clock/advance", {"by": "1h"})
    assert await scope_of(rig, "workers") == WORKERS
    plan = await rig.post("/scopes/workers/scale/plan", {"capacity": 2})
    assert (plan["members"], plan["adds"]) == (0, 2)
    for name, code in (("web", "not-a-scale-set"), ("orkers", "unknown-scope")):
        answer = await rig.api.post(f"/scopes/{name}/scale/plan", json={"capacity": 2})
        assert answer.json()["code"] == code


async def test_the_past_is_found_by_the_same_names_and_of_who_is_gone_by_the_whole_id(
    named: Rig,
) -> None:
    event = await named.schedule("my-web-0")
    for name in ("my-web", "availability-set/my-web"):
        assert [e["id"] for e in (await named.get("/events", scope=name))["events"]] == [
            event["id"]
        ]
        assert (await named.get("/history", scope=name))["entries"]
    for name in ("y-web", "MY-WEB"):
        assert (await named.get("/events", 404, scope=name))["code"] == "unknown-scope"
        assert (await named.get("/history", 404, scope=name))["code"] == "unknown-scope"
    assert (await named.get("/events", 409, scope="web"))["code"] == "ambiguous-name"
    assert (await named.get("/events", 409, instance="web-0"))["code"] == "ambiguous-name"
    assert (await named.get("/events", instance="web/web-1"))["events"] == []
    assert (await named.get("/events", instance="my-web-0", scope="db"))["events"] == []
    gone = f"{SUB}/default/availability-set/my-web/nobody"
    assert (await named.get("/events", instance=gone))["events"] == []
    assert (await named.get("/events", 404, instance="nobody"))["code"] == "unknown-instance"


async def test_ids_of_events_are_the_same_in_both_cases_and_need_all_their_letters(
    rig: Rig,
) -> None:
    event = await rig.schedule("web-0")
    id = event["id"]
    for name in (id, id.lower()):
        assert (await rig.get(f"/events/{name}"))["id"] == id
        assert (await rig.get(f"/events/{name}/documents"))["documents"]
        lines = (await rig.get("/history", event=name))["entries"]
        assert [each["kind"] for each in lines] == ["Scheduled"]
    for name in (id[:-1], id[1:], f"{id}0", "%25"):
        assert (await rig.get(f"/events/{name}", 404))["code"] == "unknown-event", name
        assert (await rig.post(f"/events/{name}/cancel", status=404))["code"] == "unknown-event"
    assert (await rig.post(f"/events/{id.lower()}/cancel"))["phase"] == "cancelled"


async def test_ids_of_rollouts_tokens_notifications_and_faults_need_all_their_letters(
    rig: Rig,
) -> None:
    rollout = (await rig.post("/rollouts", {"type": "Reboot", "scopes": ["web"]}, 201))["id"]
    token = (await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201))["id"]
    hook = {"name": "hook", "kind": "webhook", "url": "http://127.0.0.1:9/"}
    target = (await rig.post("/notifications", hook, 201))["id"]
    fault = (await rig.post("/faults", {"kind": "status"}, 201))["id"]
    for path, id, code in (
        ("rollouts", rollout, "unknown-rollout"),
        ("tokens", token, "unknown-token"),
        ("notifications", target, "unknown-notification"),
        ("faults", fault, "unknown-fault"),
    ):
        for wrong in (id[:-1], id.upper() if id.upper() != id else f"{id}x", f"{id}0", "%25"):
            answer = await rig.api.request(
                "GET" if path == "rollouts" else "DELETE", f"/{path}/{wrong}"
            )
            assert answer.json()["code"] == code, (path, wrong)
    await rig.get(f"/rollouts/{rollout}")
    for path, id in (("tokens", token), ("notifications", target), ("faults", fault)):
        await rig.delete(f"/{path}/{id}")
