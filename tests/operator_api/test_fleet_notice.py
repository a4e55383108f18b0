"""No declaration through the API takes an instance, or a driver, away unnoticed."""

from typing import Any

import pytest

from tests.operator_api.rig import Rig
from tests.operator_api.test_auth import bearer, token

TOML = {"Content-Type": "application/toml"}
SCOPE = "00000000-0000-0000-0000-000000000000/default/scale-set/workers/0"
WORKERS = {"name": "workers", "terminate_notice": "5m"}
WHY = "the rack burns"


@pytest.fixture(autouse=True)
async def watched(rig: Rig) -> None:
    await rig.activate("workers_0", "web-0", "db")


async def live(rig: Rig, scope: str = "workers") -> list[str]:
    found = (await rig.get("/fleet", search=f"/{scope}"))["scopes"]
    return [each["name"] for scope in found for each in scope["instances"]]


async def pending(rig: Rig) -> dict[str, str]:
    """Who waits for its Terminate, and the phase of that."""
    events = (await rig.get("/events"))["events"]
    return {each["resources"][0]: each["phase"] for each in events if each["type"] == "Terminate"}


async def post(rig: Rig, *sets: dict[str, Any], status: int = 200, **query: str) -> Any:
    answer = await rig.api.post("/fleet", json={"scale_set": list(sets)}, params=query)
    return Rig.check(answer, status)


async def test_a_smaller_declaration_goes_through_terminate(rig: Rig) -> None:
    done = await post(rig, {**WORKERS, "capacity": 1})
    leaving = [each for each in done["changes"] if each["action"] == "remove"]
    assert [(each["what"], each["terminateNotice"]) for each in leaving] == [
        ("instance workers_1", "PT5M"),
        ("instance workers_2", "PT5M"),
    ]
    assert len(done["terminates"]) == 2
    assert await live(rig) == ["workers_0", "workers_1", "workers_2"]
    assert await pending(rig) == {"workers_1": "scheduled", "workers_2": "scheduled"}
    seen = [each["Resources"] for each in (await rig.document("workers_0"))["Events"]]
    assert sorted(seen) == [["workers_1"], ["workers_2"]]
    assert (await post(rig, {**WORKERS, "capacity": 1}))["changes"] == []
    await rig.post("/clock/advance", {"by": "299s"})
    assert len(await live(rig)) == 3
    await rig.post("/clock/advance", {"by": "40s"})
    assert await live(rig) == ["workers_0"]


@pytest.mark.parametrize("sets", [[], [{"name": "workers"}]], ids=["left-out", "emptied"])
async def test_neither_a_whole_file_nor_an_empty_set_is_a_way_around_it(
    rig: Rig, sets: list[dict[str, Any]]
) -> None:
    file = {"scale_set": [{**WORKERS, "capacity": 3}]}
    Rig.check(await rig.api.put("/fleet", json=file), 200)
    Rig.check(await rig.api.put("/fleet", json={"scale_set": sets}), 200)
    assert len(await live(rig)) == 3
    assert len(await pending(rig)) == 3
    notices = [each["terminateNotice"] for each in (await rig.get("/scopes/workers"))["instances"]]
    assert notices == ["PT5M"] * 3


async def test_removing_by_name_goes_through_terminate_and_force_does_not_help(rig: Rig) -> None:
    for path in ("/instances/workers_2", "/scopes/workers"):
        for force in ("false", "true"):
            await rig.delete(path, force=force)
    assert len(await live(rig)) == 3
    assert set((await pending(rig)).values()) == {"scheduled"}
    assert len(await pending(rig)) == 3


async def test_what_azure_does_not_announce_leaves_at_once(rig: Rig) -> None:
    await rig.delete("/instances/web-3")
    await rig.delete("/scopes/db")
    assert await live(rig, "web") == ["web-0", "web-1", "web-2"]
    assert await live(rig, "db") == []


async def test_creating_what_exists_is_refused_and_changes_nothing(rig: Rig) -> None:
    before = await rig.get("/fleet")
    for name in ("workers", "WORKERS"):
        problem = await post(rig, {"name": name, "capacity": 0}, status=409, create="true")
        assert problem["code"] == "scope-exists"
        assert "choose another name" in problem["detail"]
    assert await rig.get("/fleet") == before
    await post(rig, {"name": "others", "capacity": 1}, create="true")
    assert await live(rig, "others") == ["others_0"]


async def test_without_notice_names_them_first_and_the_history_says_who_and_why(rig: Rig) -> None:
    problem = await rig.delete("/scopes/workers", 422, withoutNotice="true")
    assert problem["code"] == "reason-needed"
    problem = await rig.delete("/scopes/workers", 409, withoutNotice="true", why=WHY)
    assert problem["code"] == "preview-needed"
    assert problem["instances"] == ["workers_0", "workers_1", "workers_2"]
    assert "workers_1" in problem["detail"]
    assert not await pending(rig)
    said = {"withoutNotice": "true", "why": WHY, "confirm": problem["confirm"]}
    done = await rig.delete("/scopes/workers", **said)
    assert {each["withoutNotice"] for each in done["changes"]} == {True}
    assert await live(rig) == []
    entries = (await rig.get("/history", scope=SCOPE))["entries"]
    gone = [each for each in entries if each["kind"] == "InstanceDeleted"]
    assert len(gone) == 3
    for entry in gone:
        assert (entry["by"], entry["why"]) == ("operator:local", WHY)
        assert "without its terminate notice" in entry["text"]


async def test_a_confirmation_is_for_those_whom_the_preview_named(rig: Rig) -> None:
    file = b'[[scale_set]]\nname = "workers"\nterminate_notice = "5m"\ncapacity = 2\n'
    said = {"withoutNotice": "true", "why": WHY}
    answer = await rig.api.post("/fleet/plan?withoutNotice=true", content=file, headers=TOML)
    plan = Rig.check(answer, 200)
    assert [each["what"] for each in plan["changes"] if each["withoutNotice"]] == [
        "instance workers_2"
    ]
    await rig.post("/scopes/workers/scale", {"capacity": 4}, 202)
    said["confirm"] = plan["confirm"]
    answer = await rig.api.put("/fleet", content=file, headers=TOML, params=said)
    problem = Rig.check(answer, 409)
    assert problem["code"] == "preview-needed"
    assert problem["instances"] == ["workers_2", "workers_3"]
    assert len(await live(rig)) == 4
    said["confirm"] = problem["confirm"]
    Rig.check(await rig.api.put("/fleet", content=file, headers=TOML, params=said), 200)
    assert await live(rig) == ["workers_0", "workers_1"]


async def test_without_notice_is_not_force(rig: Rig) -> None:
    await rig.post("/instances/workers_2/delete", status=202)
    said: dict[str, Any] = {"withoutNotice": "true", "why": WHY}
    code = (await rig.delete("/instances/workers_2", 409, **said))["confirm"]
    problem = await rig.delete("/instances/workers_2", 409, **said, confirm=code)
    assert problem["code"] == "instance-has-event"
    await rig.delete("/instances/workers_2", **said, confirm=code, force="true")
    assert await live(rig) == ["workers_0", "workers_1"]
    assert await pending(rig) == {"workers_2": "cancelled"}


async def test_only_an_admin_may_say_without_notice(rig: Rig) -> None:
    headers = bearer(await token(rig, "operator"))
    for method, path in (
        ("DELETE", "/scopes/workers"),
        ("DELETE", "/instances/workers_1"),
        ("PUT", "/fleet"),
        ("POST", "/fleet"),
    ):
        body: dict[str, Any] | None = None if method == "DELETE" else {}
        answer = await rig.api.request(
            method, path, params={"withoutNotice": "true", "why": WHY}, json=body, headers=headers
        )
        assert Rig.check(answer, 403)["code"] == "without-notice-needs-admin", (method, path)
    assert len(await live(rig)) == 3


COMMAND = {"type": "command", "run": "/bin/true"}


async def driver(rig: Rig, scope: str) -> str:
    return str((await rig.get(f"/scopes/{scope}"))["driver"])


async def test_an_operator_does_not_disarm_a_driver_by_leaving_it_out(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": "s2", "driver": COMMAND}]})
    headers = bearer(await token(rig, "operator"))
    answer = await rig.api.post("/fleet", json={"vm": [{"name": "s2"}]}, headers=headers)
    assert Rig.check(answer, 200)["changes"] == []
    assert await driver(rig, "s2") == "command"
    for said in ("simulated", {**COMMAND, "run": "/bin/false"}):
        body = {"vm": [{"name": "s2", "driver": said}]}
        for method in ("POST", "PUT"):
            answer = await rig.api.request(method, "/fleet", json=body, headers=headers)
            assert Rig.check(answer, 403)["code"] == "driver-needs-admin"
    assert await driver(rig, "s2") == "command"


async def test_a_whole_file_without_the_driver_says_simulated_and_needs_an_admin(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": "s2", "driver": COMMAND}]})
    headers = bearer(await token(rig, "operator"))
    body = {"vm": [{"name": "s2"}]}
    answer = await rig.api.put("/fleet", json=body, headers=headers)
    assert Rig.check(answer, 403)["code"] == "driver-needs-admin"
    planned = Rig.check(await rig.api.post("/fleet/plan", json=body, headers=headers), 200)
    assert "driver command → simulated" in planned["changes"][0]["detail"]
    Rig.check(await rig.api.put("/fleet", json=body), 200)
    assert await driver(rig, "s2") == "simulated"


async def test_an_operator_makes_what_is_new_with_the_simulated_driver(rig: Rig) -> None:
    headers = bearer(await token(rig, "operator"))
    for body in ({"vm": [{"name": "s3"}]}, {"vm": [{"name": "s3", "tags": {"a": "b"}}]}):
        Rig.check(await rig.api.post("/fleet", json=body, headers=headers), 200)
    assert await driver(rig, "s3") == "simulated"


async def as_operator(rig: Rig, body: dict[str, Any], status: int, **query: str) -> Any:
    known = (await rig.get("/tokens"))["tokens"]
    for each in known:
        await rig.delete(f"/tokens/{each['id']}")
    headers = bearer(await token(rig, "operator"))
    answer = await rig.api.post("/fleet", json=body, headers=headers, params=query)
    return Rig.check(answer, status)


async def test_an_operator_does_not_make_a_fleet_with_instances_a_test_fleet(rig: Rig) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "live", "capacity": 2}]})
    for body in (
        {"test": True, "scale_set": [{"name": "live", "capacity": 2}]},
        {"scale_set": [{"name": "live", "test": True}]},
    ):
        problem = await as_operator(rig, body, 403)
        assert problem["code"] == "test-needs-admin"
        assert "only an admin" in problem["detail"]
    await as_operator(rig, {"test": True, "vm": [{"name": "new"}]}, 200)
    await rig.post("/fleet", {"scale_set": [{"name": "live", "test": True}]})
    await as_operator(rig, {"scale_set": [{"name": "live", "test": False}]}, 200)


async def test_an_operator_does_not_point_a_driver_at_another_machine(rig: Rig) -> None:
    armed = {"name": "s2", "handle": "vm-s2", "driver": COMMAND}
    group = {"name": "av", "driver": COMMAND, "instances": ["av-0"]}
    await rig.post("/fleet", {"vm": [armed, {"name": "prod"}], "availability_set": [group]})
    newcomers: list[Any] = [{"name": "a", "handle": "vm-s2"}, {"name": "b", "handle": "x"}, "prod"]
    bodies: list[dict[str, Any]] = [
        {"vm": [{"name": "s2", "handle": "prod"}]},
        {"vm": [{"name": "s2", "handle": ""}]},
        {"availability_set": [{"name": "av", "instances": [{"name": "av-0", "handle": "h"}]}]},
        *({"availability_set": [{"name": "av", "instances": ["av-0", each]}]}
          for each in newcomers),
    ]  # fmt: skip
    for body in bodies:
        problem = await as_operator(rig, body, 403)
        assert problem["code"] == "handle-needs-admin", body
    body = {"availability_set": [{"name": "av", "instances": ["av-0", "av-1"]}]}
    await as_operator(rig, body, 200)
    await as_operator(rig, {"vm": [{"name": "prod", "handle": "simulated-anyway"}]}, 200)
    for body in bodies:
        await rig.post("/fleet", body)


@pytest.mark.parametrize("door", ["scaled", "removed"])
async def test_an_emptied_set_keeps_its_driver(rig: Rig, door: str) -> None:
    await rig.post("/fleet", {"scale_set": [{"name": "arm", "capacity": 2, "driver": COMMAND}]})
    if door == "scaled":
        await rig.post("/fleet", {"scale_set": [{"name": "arm", "capacity": 0}]})
    else:
        await rig.delete("/scopes/arm")
    assert await live(rig, "arm") == []
    loud = {"scale_set": [{"name": "arm", "capacity": 2, "driver": "simulated"}]}
    assert (await as_operator(rig, loud, 403))["code"] == "driver-needs-admin"
    await as_operator(rig, {"scale_set": [{"name": "arm", "capacity": 2}]}, 200)
    assert await driver(rig, "arm") == "command"


async def test_a_removed_vm_comes_back_with_the_driver_and_handle_it_had(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": "s2", "handle": "vm-s2", "driver": COMMAND}]})
    await rig.delete("/scopes/s2")
    loud = {"vm": [{"name": "s2", "handle": "vm-prod"}]}
    assert (await as_operator(rig, loud, 403))["code"] == "handle-needs-admin"
    await as_operator(rig, {"vm": [{"name": "s2"}]}, 200)
    id = (await rig.get("/scopes/s2"))["id"]
    roster = (await rig.node.store.read(id)).roster
    assert (roster.driver, roster.live[0].handle) == ("command", "vm-s2")


async def test_creating_a_set_of_capacity_0_anew_is_refused_but_not_a_removed_one(rig: Rig) -> None:
    await post(rig, {"name": "empty", "capacity": 0})
    again = {"name": "empty", "capacity": 1}
    assert (await post(rig, again, status=409, create="true"))["code"] == "scope-exists"
    await post(rig, again)
    await rig.delete("/scopes/empty")
    await post(rig, again, create="true")
    await post(rig, {"name": "empty", "capacity": 0})
    assert (await post(rig, again, status=409, create="true"))["code"] == "scope-exists"


async def test_a_removed_set_that_had_lost_a_placement_group_may_be_created_again(rig: Rig) -> None:
    await post(rig, {"name": "big", "capacity": 101})
    await post(rig, {"name": "big", "capacity": 1})
    await rig.delete("/scopes/big")
    await post(rig, {"name": "big", "capacity": 1}, create="true")


async def test_a_file_that_names_no_driver_is_told_so(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": "s2", "driver": COMMAND}]})
    headers = bearer(await token(rig, "operator"))
    answer = await rig.api.put("/fleet", json={"vm": [{"name": "s2"}]}, headers=headers)
    detail = Rig.check(answer, 403)["detail"]
    assert "has the driver 'command' and this file names none" in detail
    answer = await rig.api.put(
        "/fleet", json={"vm": [{"name": "s2", "driver": "simulated"}]}, headers=headers
    )
    assert "would get the driver 'simulated'" in Rig.check(answer, 403)["detail"]


async def test_an_operator_grows_a_set_with_a_driver_beyond_a_placement_group(rig: Rig) -> None:
    await post(rig, {"name": "big", "capacity": 100, "driver": COMMAND})
    loud = {"name": "big", "capacity": 101, "driver": {**COMMAND, "run": "/bin/false"}}
    assert (await as_operator(rig, {"scale_set": [loud]}, 403))["code"] == "driver-needs-admin"
    await as_operator(rig, {"scale_set": [{"name": "big", "capacity": 101}]}, 200)
    assert len(await live(rig, "big")) == 101
    assert await driver(rig, "big/1") == "command"


async def test_a_name_that_differs_only_in_spelling_is_refused(rig: Rig) -> None:
    for body in (
        {"scale_set": [{"name": "Workers", "capacity": 1}]},
        {"vm": [{"name": "db"}, {"name": "DB"}]},
        {"vm": [{"name": "new"}, {"name": "New"}]},
        {"vm": [{"name": "x", "resource_group": "G"}, {"name": "x", "resource_group": "g"}]},
    ):
        problem = Rig.check(await rig.api.post("/fleet", json=body), 409)
        assert problem["code"] == "scope-exists"
        assert "differs only in spelling" in problem["detail"]
    assert await live(rig, "new") == []
    await rig.delete("/scopes/db")
    await rig.post("/fleet", {"vm": [{"name": "DB"}]})


async def test_what_a_partial_declaration_leaves_out_stays(rig: Rig) -> None:
    full = {
        "name": "kept",
        "capacity": 2,
        "terminate_notice": "5m",
        "addresses": ["127.0.0.21", "127.0.0.22"],
        "tags": {"env": "prod"},
        "approve": {"user_reboot": True},
        "notice": {"Reboot": "1h"},
        "update_domains": 3,
        "location": "here",
        "test": True,
    }
    await post(rig, full)
    before = await rig.get("/scopes/kept")
    assert (await post(rig, {"name": "kept"}))["changes"] == []
    done = await post(rig, {"name": "kept", "capacity": 3})
    assert [each["what"] for each in done["changes"]] == ["instance kept_2"]
    after = await rig.get("/scopes/kept")
    assert after["instances"][:2] == before["instances"]
    assert after["instances"][2]["tags"] == {"env": "prod"}
    assert after["instances"][2]["terminateNotice"] == "PT5M"
    empty: dict[str, Any] = {
        "addresses": [],
        "tags": {},
        "terminate_notice": None,
        "approve": {},
        "notice": {},
    }
    await post(rig, {"name": "kept", **empty})
    after = await rig.get("/scopes/kept")
    assert {(*each["addresses"], *each["tags"]) for each in after["instances"]} == {()}
    assert after["updateDomains"] == 3


async def test_members_that_a_partial_declaration_leaves_out_stay(rig: Rig) -> None:
    before = await rig.get("/scopes/web")
    body = {"availability_set": [{"name": "web"}], "vm": [{"name": "db"}]}
    assert (await rig.post("/fleet", body))["changes"] == []
    members: list[Any] = ["web-0", {"name": "web-1", "tags": {"a": "b"}}, "web-2"]
    members.append({"name": "web-3", "addresses": []})
    await rig.post("/fleet", {"availability_set": [{"name": "web", "instances": members}]})
    after = await rig.get("/scopes/web")
    assert [each["addresses"] for each in after["instances"][:3]] == [
        each["addresses"] for each in before["instances"][:3]
    ]
    assert after["instances"][3]["addresses"] == []
    assert after["instances"][1]["tags"] == {"a": "b"}


async def test_roles_that_a_partial_declaration_leaves_out_stay(rig: Rig) -> None:
    shop = {"name": "shop", "roles": {"Front": 3, "Back": 1}, "addresses": ["127.0.0.41"]}
    await rig.post("/fleet", {"cloud_service": [shop]})
    await rig.delete("/instances/Front_IN_1")
    before = await rig.get("/scopes/shop")
    done = await rig.post("/fleet", {"cloud_service": [{"name": "shop"}]})
    assert done["changes"] == []
    assert await rig.get("/scopes/shop") == before


async def test_an_old_preview_does_not_count(rig: Rig) -> None:
    said: dict[str, Any] = {"withoutNotice": "true", "why": WHY}
    code = (await rig.delete("/scopes/workers", 409, **said))["confirm"]
    await rig.schedule("workers_0")
    problem = await rig.delete("/scopes/workers", 409, **said, confirm=code, force="true")
    assert problem["code"] == "preview-needed"
    assert problem["confirm"] != code
    await rig.delete("/scopes/workers", **said, confirm=problem["confirm"], force="true")


async def test_a_set_whose_removal_was_cancelled_is_there_also_when_it_is_empty(rig: Rig) -> None:
    await rig.delete("/scopes/workers")
    for event in (await rig.get("/events"))["events"]:
        await rig.post(f"/events/{event['id']}/cancel")
    await rig.post("/scopes/workers/scale", {"capacity": 0}, 202)
    await rig.post("/clock/advance", {"by": "10m"})
    assert await live(rig) == []
    again = {"name": "workers", "capacity": 2}
    assert (await post(rig, again, status=409, create="true"))["code"] == "scope-exists"
    await post(rig, again)
    instances = (await rig.get("/scopes/workers"))["instances"]
    assert [each["terminateNotice"] for each in instances] == ["PT5M"] * 2


async def test_a_set_is_removed_with_the_last_group_in_which_somebody_stays(rig: Rig) -> None:
    many = {"name": "many", "capacity": 102}
    await post(rig, many)
    await rig.delete("/scopes/many/1")
    await rig.post("/scopes/many/scale", {"capacity": 0}, 202)
    await rig.post("/clock/advance", {"by": "10m"})
    assert await live(rig, "many") == []
    assert (await post(rig, many, status=409, create="true"))["code"] == "scope-exists"
    await post(rig, many)
    await rig.post("/scopes/many/scale", {"capacity": 1}, 202)
    await rig.post("/clock/advance", {"by": "10m"})
    await rig.delete("/scopes/many")
    await post(rig, many, create="true")


@pytest.mark.parametrize("create", ["false", "true"])
async def test_what_is_left_out_is_compared_as_it_is_and_not_with_its_default(
    rig: Rig, create: str
) -> None:
    shop = {"name": "shop", "roles": {"Front": 2}}
    big = {"name": "big", "update_domains": 10, "instances": [{"name": "b0", "update_domain": 7}]}
    await rig.post("/fleet", {"cloud_service": [shop], "availability_set": [big]})
    pools = [[f"127.0.9.{n}", f"127.0.9.{n + 1}"] for n in (1, 3)]
    members = [{"name": "b0", "update_domain": 7}, {"name": "b1", "update_domain": 9}]
    part = {
        "scale_set": [{"name": "workers", "addresses": pools[0]}],
        "cloud_service": [{"name": "shop", "addresses": pools[1]}],
        "availability_set": [{"name": "big", "instances": members}],
    }
    if create == "true":
        answer = await rig.api.post("/fleet", json=part, params={"create": create})
        assert Rig.check(answer, 409)["code"] == "scope-exists"
        return
    await rig.post("/fleet", part)
    for scope, pool in (("workers", pools[0]), ("shop", pools[1])):
        instances = (await rig.get(f"/scopes/{scope}"))["instances"]
        assert [each["addresses"] for each in instances[:2]] == [[each] for each in pool]
    domains = [each["updateDomain"] for each in (await rig.get("/scopes/big"))["instances"]]
    assert domains == [7, 9]


@pytest.mark.parametrize(
    "part",
    [
        {"scale_set": [{"name": "workers", "addresses": [f"127.0.9.{n}" for n in range(4)]}]},
        {"scale_set": [{"name": "new", "addresses": ["127.0.9.1"]}]},
        {"cloud_service": [{"name": "new", "addresses": ["127.0.9.1"]}]},
        {"availability_set": [{"name": "web", "instances": [{"name": "x", "update_domain": 2}]}]},
        {"availability_set": [{"name": "web", "instances": [{"name": "x", "fault_domain": -1}]}]},
    ],
)
async def test_what_does_not_fit_to_what_is_there_is_refused(
    rig: Rig, part: dict[str, Any]
) -> None:
    before = await rig.get("/fleet")
    problem = Rig.check(await rig.api.post("/fleet", json=part), 422)
    assert problem["code"] == "fleet-invalid"
    assert await rig.get("/fleet") == before
