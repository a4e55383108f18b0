"""The end of a whole scale set, and its new beginning."""

from typing import Any

import pytest

from fairwarning.core.commands import Command, OperateAll
from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import StoreDown
from tests.azure_api.arm_client import COMPUTE
from tests.azure_api.scale_set_client import (
    NETWORK_BODY,
    VNET,
    ScaleSetClient,
    body_of,
    connected,
    told,
)
from tests.operator_api.rig import Rig


async def test_a_set_is_there_until_its_last_instance_is_gone(arm: ScaleSetClient) -> None:
    await arm.make(**told())
    await arm.events("s_0")
    started = await arm.ask("DELETE", "s", status=202)
    assert len(await arm.events("s_0")) == 2
    assert (await arm.get("s"))["properties"]["provisioningState"] == "Deleting"
    again = await arm.ask("DELETE", "s", status=202)
    assert again.headers["Azure-AsyncOperation"] == started.headers["Azure-AsyncOperation"]
    assert (await arm.refused("PUT", "s", body_of(), 409))[0] == "Conflict"
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    await arm.get("s", 404)
    list_reply = await arm.get(f"{COMPUTE}/virtualMachineScaleSets")
    assert [each["name"] for each in list_reply["value"]] == ["workers"]
    await arm.ask("DELETE", "s", status=204)
    assert await arm.rig.node.store.records("arm", limit=10) == []


async def test_a_set_may_come_again_under_the_same_name(arm: ScaleSetClient) -> None:
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    await arm.make(capacity=3, **told(), **connected())
    await arm.ask("DELETE", "s", status=202)
    await arm.advance("6m")
    shown = await arm.make(capacity=2, **connected())
    assert "scheduledEventsProfile" not in shown["properties"]["virtualMachineProfile"]
    list_reply = (await arm.get("s/virtualMachines"))["value"]
    assert [each["instanceId"] for each in list_reply] == ["0", "1"]
    assert all(each["properties"]["latestModelApplied"] for each in list_reply)
    assert await arm.rig.node.store.locate("10.0.0.4") is not None
    await arm.ask("PATCH", "s", {"sku": {"capacity": 3}})
    assert await arm.capacity() == 3


async def test_it_may_come_again_as_another_kind_and_size(arm: ScaleSetClient) -> None:
    await arm.make(capacity=130)
    await arm.ask("DELETE", "s", status=202)
    await arm.advance()
    await arm.make(mode="Flexible", capacity=1, priority="Spot")
    await arm.ask("PATCH", "s", {"sku": {"capacity": 101}})
    ids = await arm.ids()
    assert len(ids) == 101
    assert not any(each.isdigit() for each in ids)


async def test_an_empty_set_is_there_until_it_is_deleted(arm: ScaleSetClient) -> None:
    await arm.make(capacity=1)
    await arm.ask("PATCH", "s", {"sku": {"capacity": 0}})
    await arm.advance()
    assert await arm.capacity() == 0
    started = await arm.ask("DELETE", "s", status=202)
    assert await arm.status(started) == "Succeeded"
    await arm.get("s", 404)


async def test_a_set_of_the_fleet_is_deleted_too(arm: ScaleSetClient) -> None:
    await arm.events("workers_0")
    started = await arm.ask("DELETE", "workers", status=202)
    assert len(await arm.events("workers_0")) == 3
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    await arm.get("workers", 404)
    fleet = await arm.rig.get("/fleet")
    assert {each["name"] for each in fleet["scopes"]} == {"web", "db"}


async def test_a_deletion_that_was_cancelled_leaves_a_set_that_works(arm: ScaleSetClient) -> None:
    await arm.make(capacity=1, **told())
    await arm.events("s_0")
    await arm.ask("DELETE", "s", status=202)
    (event,) = await arm.events("s_0")
    await arm.rig.post(f"/events/{event['EventId']}/cancel", {"reason": "no"})
    assert (await arm.get("s"))["properties"]["provisioningState"] == "Failed"
    await arm.ask("PATCH", "s", {"sku": {"capacity": 2}})
    assert (await arm.get("s"))["properties"]["provisioningState"] == "Succeeded"
    assert await arm.ids() == ["0", "1"]


async def test_instances_that_go_already_are_waited_for(arm: ScaleSetClient) -> None:
    await arm.make(**told())
    await arm.events("s_0")
    await arm.post("s/delete", "1")
    started = await arm.ask("DELETE", "s", status=202)
    assert len(await arm.events("s_0")) == 2
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"


async def test_a_namesake_that_the_fleet_gets_later_inherits_nothing(arm: ScaleSetClient) -> None:
    await arm.ask("PATCH", "workers", {"tags": {"owner": "ana"}})
    await arm.ask("DELETE", "workers", status=202)
    await arm.advance("6m")
    file = '[[scale_set]]\nname = "workers"\ncapacity = 1\n'
    answer = await arm.rig.api.put(
        "/fleet", content=file, headers={"Content-Type": "application/toml"}
    )
    assert answer.status_code == 200, answer.text
    shown = await arm.get("workers")
    assert (shown["tags"], shown["sku"]["capacity"]) == ({}, 1)
    assert await arm.rig.node.store.records("arm", limit=10) == []


async def test_a_deletion_that_could_not_begin_removes_nothing(
    arm: ScaleSetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await arm.make(capacity=2, **told())
    engine = arm.rig.node.engine
    real = engine.submit

    async def submit(scope_id: ScopeId, command: Command, **more: Any) -> Any:
        if isinstance(command, OperateAll):
            raise StoreDown("no connection")
        return await real(scope_id, command, **more)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "submit", submit)
        await arm.ask("DELETE", "s", status=503)
    await arm.ask("PATCH", "s", {"sku": {"capacity": 0}})
    await arm.advance()
    problem = await arm.rig.api.post(
        "/fleet", json={"scale_set": [{"name": "s", "capacity": 1}]}, params={"create": "true"}
    )
    assert Rig.check(problem, 409)["code"] == "scope-exists"


async def test_a_set_that_lives_is_found_where_another_spelling_was_removed(
    arm: ScaleSetClient,
) -> None:
    await arm.rig.post("/fleet", {"scale_set": [{"name": "batch", "capacity": 1}]})
    await arm.rig.delete("/scopes/batch")
    await arm.get("batch", 404)
    await arm.rig.post("/fleet", {"scale_set": [{"name": "Batch", "capacity": 2}]})
    assert (await arm.get("batch"))["name"] == "Batch"
    await arm.ask("PUT", "batch", body_of(capacity=3))
    assert await arm.capacity("Batch") == 3
    names = [each["name"] for each in (await arm.rig.get("/fleet", search="batch"))["scopes"]]
    assert names == ["Batch"]


async def test_a_set_is_deleted_again_after_a_deletion_in_it_was_cancelled(
    arm: ScaleSetClient,
) -> None:
    await arm.make(**told())
    await arm.events("s_0")
    await arm.ask("DELETE", "s", status=202)
    by_name = {each["Resources"][0]: each["EventId"] for each in await arm.events("s_0")}
    await arm.rig.post(f"/events/{by_name['s_1']}/cancel", {"reason": "no"})
    started = await arm.ask("DELETE", "s", status=202)
    assert len(await arm.events("s_0")) == 2
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    await arm.get("s", 404)
