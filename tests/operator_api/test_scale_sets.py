"""Scale sets through the API: their size, model and policy, over all placement groups."""

import asyncio
import dataclasses
from typing import Any, cast

import msgspec
import pytest

from fairwarning.boot import make_control
from fairwarning.core.commands import AddInstances, Command, Operate
from fairwarning.core.instants import Instant
from fairwarning.core.model import Instance, InstanceName, OperationKind, Priority, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import Orchestration, Place, ScaleSet, expand
from fairwarning.engine.protocols import Receipt
from fairwarning.engine.service import Engine
from fairwarning.operator_api.context import AzureListener, Control
from fairwarning.operator_api.locks import KIND, Lock
from fairwarning.operator_api.scale_sets import operate_all, resize
from tests.operator_api.rig import ME, Block, Rig
from tests.support.loop_turns import turns_beside

SET = "00000000-0000-0000-0000-000000000000/default/scale-set/workers"


async def names(rig: Rig, resource: str = "workers") -> list[str]:
    scopes = (await rig.get("/fleet", search=resource))["scopes"]
    return [each["name"] for scope in scopes for each in scope["instances"]]


async def scale(rig: Rig, capacity: int, status: int = 202, **more: Any) -> Any:
    return await rig.post("/scopes/workers/scale", {"capacity": capacity, **more}, status)


async def test_growing_takes_new_numbers_and_the_given_addresses(rig: Rig) -> None:
    grown = await scale(rig, 5, addresses=["127.0.9.1"])
    assert (grown["capacity"], grown["added"], grown["events"]) == (
        5,
        ["workers_3", "workers_4"],
        [],
    )
    instance = await rig.get("/instances/workers_3")
    assert instance["addresses"] == ["127.0.9.1"]
    assert instance["terminateNotice"] == "PT5M"
    assert (instance["updateDomain"], instance["faultDomain"]) == (3, 3)
    assert (await rig.document("workers_4"))["Events"] == []


async def test_shrinking_warns_the_highest_numbers_as_their_model_says(rig: Rig) -> None:
    await rig.activate("workers_0")
    shrunk = await scale(rig, 1)
    assert [each["resources"] for each in shrunk["events"]] == [["workers_1"], ["workers_2"]]
    assert {(e["type"], e["operation"], e["phase"]) for e in shrunk["events"]} == {
        ("Terminate", "delete", "scheduled")
    }
    assert (await rig.get("/scopes/workers"))["capacity"] == 1
    assert len(await names(rig)) == 3
    await rig.post("/clock/advance", {"by": "6m"})
    assert await names(rig) == ["workers_0"]


async def test_who_is_about_to_go_is_not_counted_and_asking_again_changes_nothing(
    rig: Rig,
) -> None:
    await rig.activate("workers_0")
    await scale(rig, 2)
    again = await scale(rig, 2)
    assert (again["added"], again["events"]) == ([], [])
    assert (await scale(rig, 3))["added"] == ["workers_3"]


async def test_a_delete_that_is_taken_back_counts_again(rig: Rig) -> None:
    await rig.activate("workers_0")
    (event,) = (await scale(rig, 2))["events"]
    await rig.post(f"/events/{event['id']}/cancel")
    assert (await rig.get("/scopes/workers"))["capacity"] == 3


async def test_a_plan_names_who_would_go_and_changes_nothing(rig: Rig) -> None:
    planned = await rig.post("/scopes/workers/scale/plan", {"capacity": 1})
    assert [each["name"] for each in planned.pop("leaving")] == ["workers_1", "workers_2"]
    assert planned == {"name": "workers", "members": 3, "capacity": 1, "adds": 0,
                       "removes": ["workers_1", "workers_2"]}  # fmt: skip
    assert (await rig.post("/scopes/workers/scale/plan", {"capacity": 9}))["adds"] == 6
    assert len(await names(rig)) == 3


async def test_numbers_are_not_reused_even_from_none(rig: Rig) -> None:
    await scale(rig, 0)
    await rig.post("/clock/advance", {"by": "1m"})
    assert await names(rig) == []
    assert (await scale(rig, 2))["added"] == ["workers_3", "workers_4"]
    assert (await rig.get("/instances/workers_3"))["terminateNotice"] == "PT5M"


async def test_a_large_set_is_one_by_its_name(rig: Rig) -> None:
    assert len((await scale(rig, 230))["added"]) == 227
    found = await rig.post("/scopes/workers/model", {"terminateNotice": "PT10M"})
    assert [each["id"].rpartition("/")[2] for each in found["scopes"]] == ["0", "1", "2"]
    assert [each["capacity"] for each in found["scopes"]] == [100, 100, 30]
    assert {each["model"]["terminateNotice"] for each in found["scopes"]} == {"PT10M"}
    assert {each["model"]["generation"] for each in found["scopes"]} == {2}
    upgraded = (await rig.post("/scopes/workers%2F1/upgrade"))["upgraded"]
    assert len(upgraded) == 230
    policy = await rig.post(f"/scopes/{SET}/policy", {"approveUserReboot": True})
    assert [each["policy"]["approveUserReboot"] for each in policy["scopes"]] == [True] * 3
    gone = (await scale(rig, 99))["events"]
    assert len(gone) == 131
    await rig.post("/clock/advance", {"by": "1m"})
    assert len(await names(rig)) == 99
    assert (await scale(rig, 100))["added"] == ["workers_230"]


async def test_a_further_group_is_of_the_latest_model(rig: Rig) -> None:
    await rig.post("/scopes/workers/model", {"reimageNotice": "PT15M"})
    await scale(rig, 101)
    (instance,) = (await rig.get("/scopes/workers%2F1"))["instances"]
    assert (instance["reimageNotice"], instance["latestModelApplied"]) == ("PT15M", True)


async def test_a_changed_model_binds_an_instance_once_it_is_upgraded(rig: Rig) -> None:
    await rig.activate("workers_0")
    changed = await rig.post("/scopes/workers/model", {"terminateNotice": None})
    assert changed["scopes"][0]["terminateNotice"] is None
    behind = [each["latestModelApplied"] for each in changed["scopes"][0]["instances"]]
    assert behind == [False] * 3
    done = await rig.post("/scopes/workers/upgrade", {"instances": ["workers_2"]})
    assert done["upgraded"] == ["workers_2"]
    unannounced, announced = (await scale(rig, 1))["events"][::-1]
    assert (unannounced["announced"], announced["announced"]) == (False, True)
    assert (await rig.post("/scopes/workers/upgrade"))["upgraded"] == ["workers_0", "workers_1"]


async def test_what_a_change_of_the_model_leaves_out_stays(rig: Rig) -> None:
    await rig.post("/scopes/workers/model", {"reimageNotice": "15m"})
    found = await rig.post("/scopes/workers/model", {"terminateNotice": "7m"})
    assert found["scopes"][0]["model"] == {
        "generation": 3,
        "terminateNotice": "PT7M",
        "reimageNotice": "PT15M",
    }
    again = await rig.post("/scopes/workers/model", {"terminateNotice": "7m"})
    assert again["scopes"][0]["model"]["generation"] == 3


async def test_a_replacement_does_not_wait_for_the_notice_of_the_old_one(rig: Rig) -> None:
    await rig.activate("workers_0")
    old = await rig.get("/instances/workers_1")
    done = await rig.post("/instances/workers_1/replace", {"addresses": ["127.0.9.9"]}, 202)
    assert (done["capacity"], done["added"]) == (3, ["workers_3"])
    (event,) = done["events"]
    assert (event["type"], event["phase"], event["resources"]) == (
        "Terminate", "scheduled", ["workers_1"],
    )  # fmt: skip
    new = await rig.get("/instances/workers_3")
    assert (new["updateDomain"], new["addresses"]) == (old["updateDomain"], ["127.0.9.9"])
    twice = await rig.post("/instances/workers_1/replace", status=404)
    assert twice["code"] == "unknown-instance"
    await rig.post("/clock/advance", {"by": "6m"})
    assert await names(rig) == ["workers_0", "workers_2", "workers_3"]


async def test_a_replacement_under_one_key_happens_once(rig: Rig) -> None:
    first = await rig.post("/instances/workers_1/replace", status=202, idempotency_key="a")
    again = await rig.post("/instances/workers_1/replace", status=202, idempotency_key="a")
    assert again == first


async def test_flexible_sets_grow_with_names_of_their_own(rig: Rig) -> None:
    resource = ScaleSet(
        name="flex",
        capacity=2,
        orchestration=Orchestration.FLEXIBLE,
        suffixes=("00000000", "zzzzzzzz"),
        priority=Priority.SPOT,
    )
    await rig.node.engine.declare([resource], by=ME)
    assert (await rig.get("/scopes/flex"))["orchestration"] == "flexible"
    (added,) = (await rig.post("/scopes/flex/scale", {"capacity": 3}, 202))["added"]
    assert added.startswith("flex_")
    assert len(added) == len("flex_00000000")
    new = await rig.get(f"/instances/{added}")
    assert (new["priority"], new["eviction"]) == ("Spot", "Deallocate")
    (event,) = (await rig.post("/scopes/flex/scale", {"capacity": 2}, 202))["events"]
    assert (event["resources"], event["announced"]) == (["flex_zzzzzzzz"], False)


async def test_two_who_resize_at_once_do_not_both_count_from_the_same(rig: Rig) -> None:
    answers = await asyncio.gather(
        *(
            rig.api.post("/scopes/workers/scale", json={"capacity": capacity})
            for capacity in (5, 7, 1, 9)
        )
    )
    done = [each.json()["capacity"] for each in answers if each.status_code == 202]
    refused = [each.json()["code"] for each in answers if each.status_code != 202]
    assert set(refused) <= {"resource-busy"}
    assert (await rig.get("/scopes/workers"))["capacity"] in done


async def test_a_set_that_is_being_changed_is_left_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = Block(monkeypatch, rig.node.store, "transact")
    growing = asyncio.create_task(scale(rig, 5))
    await block.reached.wait()
    problem = await scale(rig, 7, 409)
    assert problem["code"] == "resource-busy"
    assert "operator:local" in problem["detail"]
    for path, body in (("model", {"terminateNotice": None}), ("policy", {}), ("upgrade", {})):
        assert (await rig.post(f"/scopes/workers/{path}", body, 409))["code"] == "resource-busy"
    block.open()
    assert (await growing)["capacity"] == 5
    assert await rig.node.store.record(KIND, SET) is None


async def test_a_set_whose_changer_died_with_its_process_is_free_at_once(rig: Rig) -> None:
    lock = Lock(by="operator:eva", owner="another process", until_ms=Instant(2**50))
    await rig.node.store.keep(KIND, SET, msgspec.json.encode(lock).decode(), by=ME)
    await scale(rig, 5)


async def test_an_address_of_somebody_else_stops_all_of_it(rig: Rig) -> None:
    await scale(rig, 99)
    for addresses in (["127.0.9.1", "127.0.9.2", "127.0.1.10"], ["127.0.9.1", "127.0.9.1"]):
        problem = await scale(rig, 102, 409, addresses=addresses)
        assert problem["code"] == "address-in-use"
    assert len(await names(rig)) == 99


async def test_what_one_group_would_refuse_stops_all_of_it(rig: Rig) -> None:
    await scale(rig, 101)
    rehearsal = {"type": "Terminate", "targets": ["workers_100"]}
    await rig.post("/events", rehearsal, 201)
    problem = await scale(rig, 98, 409)
    assert problem["code"] == "already-pending"
    assert (await rig.get("/scopes/workers%2F0"))["capacity"] == 100


async def test_whoever_comes_first_wins_and_the_other_hears_that_nothing_was_done(
    rig: Rig,
) -> None:
    command = AddInstances(instances=(Instance(name=InstanceName("workers_3")),))
    control = overtaken(rig, {ScopeId(f"{SET}/0"): command})
    groups = [await rig.node.store.read(ScopeId(f"{SET}/0"))]
    with pytest.raises(Refused, match="nothing was done") as caught:
        await resize(control, groups, 5, by=ME)
    assert caught.value.code is Code.INSTANCE_EXISTS
    assert await names(rig) == ["workers_0", "workers_1", "workers_2", "workers_3"]


async def test_what_is_overtaken_halfway_says_so_and_asking_again_completes_it(rig: Rig) -> None:
    await scale(rig, 101)
    second = ScopeId(f"{SET}/1")
    event_id = rig.node.engine.new_id()
    command = Operate(
        event_id=event_id, kind=OperationKind.DELETE, instance=InstanceName("workers_100")
    )
    control = overtaken(rig, {second: command})
    groups = [await rig.node.store.read(ScopeId(f"{SET}/0"))]
    with pytest.raises(Refused, match=f"it was done in {SET}/0 and nowhere else"):
        await resize(control, groups, 98, by=ME)
    await scale(rig, 98)
    await rig.post("/clock/advance", {"by": "1m"})
    assert len(await names(rig)) == 98


def overtaken(rig: Rig, commands: dict[ScopeId, Command]) -> Control:
    """A control plane in which somebody else's command to a scope always comes first."""
    engine = rig.node.engine

    class Overtaken:
        new_id = staticmethod(engine.new_id)

        async def submit(self, scope_id: ScopeId, command: Command, **more: Any) -> Receipt:
            if scope_id in commands:
                await engine.submit(scope_id, commands.pop(scope_id), by=ME)
            return await engine.submit(scope_id, command, **more)

    control = make_control(engine, rig.node.store, engine.views, rig.node.clock, AzureListener())
    return dataclasses.replace(control, engine=cast(Engine, Overtaken()))


async def test_bad_questions_about_sets_get_the_documented_problem(rig: Rig) -> None:
    for path, body, status, code in (
        ("/scopes/workers/scale", {"capacity": 1001}, 422, "body-invalid"),
        ("/scopes/workers/scale", {"capacity": -1}, 422, "body-invalid"),
        ("/scopes/workers/scale", {}, 422, "body-invalid"),
        ("/scopes/web/scale", {"capacity": 1}, 409, "not-a-scale-set"),
        ("/scopes/none/scale", {"capacity": 1}, 404, "unknown-scope"),
        ("/scopes/workers/scale", {"capacity": 9, "addresses": ["x"]}, 422, "address-invalid"),
        (
            "/scopes/workers/scale",
            {"capacity": 9, "addresses": ["fe80::1"]},
            422,
            "address-invalid",
        ),
        ("/scopes/workers/model", {"terminateNotice": "4m"}, 422, "terminate-notice-invalid"),
        ("/scopes/workers/model", {"reimageNotice": "5m"}, 422, "reimage-notice-invalid"),
        ("/scopes/db/model", {"terminateNotice": "5m"}, 409, "not-a-scale-set"),
        ("/scopes/workers/upgrade", {"instances": ["web-0"]}, 404, "unknown-instance"),
        ("/scopes/workers/upgrade", {"instances": []}, 422, "body-invalid"),
        ("/scopes/workers/policy", {"approveUserReboot": None}, 422, "body-invalid"),
        ("/instances/web-0/replace", {}, 409, "not-a-scale-set"),
    ):
        assert (await rig.post(path, body, status))["code"] == code, path
    assert (await rig.get("/scopes/workers"))["model"]["generation"] == 1
    assert len(await names(rig)) == 3


@pytest.mark.parametrize("said", ["banana", 7, "PT0.1H", "PT", "4m", "PT15M1S", ["PT5M"], "-PT5M"])
async def test_a_terminate_notice_that_is_none_has_one_answer(rig: Rig, said: object) -> None:
    problem = await rig.post("/scopes/workers/model", {"terminateNotice": said}, 422)
    assert problem["code"] == "terminate-notice-invalid"
    assert problem["detail"].endswith("; choose from PT5M to PT15M")
    resource = {"name": "jobs", "capacity": 1, "terminate_notice": said}
    problem = await rig.post("/fleet", {"scale_set": [resource]}, 422)
    assert (problem["code"], problem["pointer"]) == (
        "fleet-invalid",
        "/scale_set/0/terminate_notice",
    )
    assert problem["detail"].endswith("; choose from PT5M to PT15M")


@pytest.mark.parametrize("said", ["banana", 7, "PT", "5m"])
async def test_a_reimage_notice_that_is_none_has_one_answer(rig: Rig, said: object) -> None:
    problem = await rig.post("/scopes/workers/model", {"reimageNotice": said}, 422)
    assert problem["code"] == "reimage-notice-invalid"
    assert "choose PT15M" in problem["detail"]


async def test_who_was_deleted_is_not_upgraded(rig: Rig) -> None:
    await rig.post("/instances/workers_1/delete", status=202)
    await rig.post("/clock/advance", {"by": "10m"})
    problem = await rig.post("/scopes/workers/upgrade", {"instances": ["workers_1"]}, 404)
    assert problem["code"] == "instance-deleted"


async def test_a_name_that_fits_two_sets_is_refused_with_both(rig: Rig) -> None:
    other = ScaleSet(name="workers", capacity=1, place=Place(resource_group="other"))
    await rig.node.engine.declare([other], by=ME)
    problem = await rig.post("/scopes/workers/scale", {"capacity": 1}, 409)
    assert problem["code"] == "ambiguous-name"
    assert problem["candidates"] == [SET, SET.replace("default", "other")]
    await rig.post("/scopes/other%2Fscale-set%2Fworkers/scale", {"capacity": 2}, 202)


async def test_what_an_owner_agrees_to_in_advance_is_not_asked_for(rig: Rig) -> None:
    await rig.activate("web-0", "db")
    for name, scope in (("web-0", "web"), ("db", "db")):
        found = await rig.post(f"/scopes/{scope}/policy", {"approveUserReboot": True})
        (policy,) = (each["policy"] for each in found["scopes"])
        assert policy == {"approveUserReboot": True, "approveUserRedeploy": False,
                          "approveAllInstancesDown": True, "notice": {}}  # fmt: skip
        assert (await rig.post(f"/instances/{name}/restart", status=202))["phase"] == "started"
        redeploy = await rig.post(f"/instances/{name}/redeploy", status=202)
        assert redeploy["phase"] == "scheduled"


async def test_a_resource_that_is_called_like_a_verb_can_be_reached(rig: Rig) -> None:
    await rig.node.engine.declare([ScaleSet(name="scale", capacity=1)], by=ME)
    assert (await rig.get("/scopes/scale"))["name"] == "scale"
    assert (await rig.post("/scopes/scale/scale", {"capacity": 2}, 202))["capacity"] == 2
    assert (await rig.get("/scopes/scale%2F0"))["capacity"] == 2


async def test_who_cannot_be_deleted_is_not_replaced(rig: Rig) -> None:
    """And nobody has come in its place."""
    await rig.activate("workers_0")
    await rig.schedule("workers_0", type="Terminate")
    before = await rig.get("/scopes/workers")
    problem = await rig.post("/instances/workers_0/replace", status=409)
    assert problem["code"] == "already-pending"
    assert await rig.get("/scopes/workers") == before


async def test_a_further_group_that_is_refused_leaves_word_of_what_was_done(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create(*_: object, **__: object) -> None:
        raise Refused(Code.ADDRESS_IN_USE, "somebody was faster")

    monkeypatch.setattr(rig.node.engine, "create", create)
    problem = await rig.post("/scopes/workers/scale", {"capacity": 101}, 409)
    assert problem["code"] == "address-in-use"
    assert "it was done in" in problem["detail"]
    assert "workers/0 and nowhere else" in problem["detail"]
    assert len((await rig.get("/scopes/workers"))["instances"]) == 100


async def test_polls_are_answered_while_an_operation_on_a_large_set_is_checked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = expand(ScaleSet(name="large", capacity=500))
    control = make_control(
        rig.node.engine, rig.node.store, rig.node.engine.views, rig.node.clock, AzureListener()
    )
    machines = [(scope.id, name) for scope in groups for name in scope.roster.instances]
    scopes = {scope.id: scope for scope in groups}

    async def read(scope_id: ScopeId) -> Scope:
        return scopes[scope_id]

    async def submit(scope_id: ScopeId, command: Command, **more: Any) -> None:
        pass

    monkeypatch.setattr(control.store, "read", read)
    monkeypatch.setattr(control.engine, "submit", submit)
    work = operate_all(control, machines, OperationKind.RESTART, by=ME)
    assert await turns_beside(work) >= len(groups)
