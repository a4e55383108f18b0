"""The whole story of Terminate, from a delete in ARM to the instance that is gone."""

from typing import Any

import httpx
import pytest

from fairwarning.azure_api.fleet_view import scopes_of_resource
from fairwarning.azure_api.scale_sets import update
from tests.azure_api.arm_client import GROUP
from tests.azure_api.scale_set_client import (
    NETWORK_BODY,
    VNET,
    ScaleSetClient,
    body_of,
    connected,
    telling,
    told,
)


async def _told_set(
    arm: ScaleSetClient, capacity: int = 2, notice: str = "PT5M", **more: Any
) -> None:
    """A set whose instances are told, and one of them has asked for its document."""
    await arm.make(capacity=capacity, **told(notice), **more)
    await arm.events("s_0")


async def _delete(arm: ScaleSetClient, *ids: str) -> httpx.Response:
    return await arm.post("s/delete", *ids)


async def test_a_delete_is_announced_and_waits_for_the_approval(arm: ScaleSetClient) -> None:
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    await _told_set(arm, **connected())
    started = await _delete(arm, "1")
    (event,) = await arm.events("s_0")
    assert (event["EventType"], event["Resources"]) == ("Terminate", ["s_1"])
    assert event["EventStatus"] == "Scheduled"
    assert await arm.events("s_0", "2017-11-01") == []
    assert await arm.status(started) == "InProgress"
    assert await arm.ids() == ["0", "1"]
    assert await arm.capacity() == 1
    await arm.approve("s_1", event["EventId"])
    await arm.advance()
    assert await arm.status(started) == "Succeeded"
    assert await arm.ids() == ["0"]
    assert await arm.events("s_0") == []
    assert await arm.rig.node.store.locate("10.0.0.5") is None
    await arm.make("other", capacity=1, **connected())
    assert await arm.rig.node.store.locate("10.0.0.5") is not None


async def test_without_an_answer_it_happens_at_the_timeout(arm: ScaleSetClient) -> None:
    await _told_set(arm, notice="PT7M")
    started = await _delete(arm, "1")
    await arm.advance("PT6M59S")
    assert await arm.status(started) == "InProgress"
    assert await arm.ids() == ["0", "1"]
    await arm.advance("10s")
    assert await arm.status(started) == "Succeeded"
    assert await arm.ids() == ["0"]


async def test_an_approved_delete_waits_for_one_that_is_not(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    first = await _delete(arm, "0")
    await arm.advance("1m")
    second = await _delete(arm, "1")
    by_name = {each["Resources"][0]: each["EventId"] for each in await arm.events("s_2")}
    await arm.approve("s_1", by_name["s_1"])
    await arm.advance("1m")
    assert await arm.ids() == ["0", "1", "2"]
    assert {await arm.status(first), await arm.status(second)} == {"InProgress"}
    await arm.approve("s_0", by_name["s_0"])
    await arm.advance()
    assert await arm.ids() == ["2"]
    assert {await arm.status(first), await arm.status(second)} == {"Succeeded"}


async def test_deletes_of_one_request_go_together(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    started = await _delete(arm, "0", "1")
    events = await arm.events("s_2")
    assert len({each["NotBefore"] for each in events}) == 1
    await arm.approve("s_0", events[0]["EventId"])
    await arm.advance("4m")
    assert len(await arm.ids()) == 3
    await arm.advance("2m")
    assert await arm.ids() == ["2"]
    assert await arm.status(started) == "Succeeded"


async def test_scaling_in_announces_too_and_is_in_progress_until_then(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    started = await arm.ask("PUT", "s", {"location": "local", "sku": {"capacity": 1}})
    assert started.json()["sku"]["capacity"] == 1
    assert started.json()["properties"]["provisioningState"] == "Updating"
    assert sorted(each["Resources"] for each in await arm.events("s_0")) == [["s_1"], ["s_2"]]
    assert await arm.status(started) == "InProgress"
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    assert (await arm.get("s"))["properties"]["provisioningState"] == "Succeeded"
    assert await arm.ids() == ["0"]


@pytest.mark.parametrize("verb", ["restart", "redeploy", "reimage", "deallocate", "poweroff"])
async def test_nothing_but_a_delete_raises_it(arm: ScaleSetClient, verb: str) -> None:
    await _told_set(arm)
    await arm.post(f"s/{verb}", "1")
    assert "Terminate" not in [each["EventType"] for each in await arm.events("s_0")]
    await arm.advance("20m")
    assert await arm.ids() == ["0", "1"]


async def test_the_model_of_the_instance_itself_decides(arm: ScaleSetClient) -> None:
    await arm.make(capacity=3)
    await arm.events("s_0")
    await arm.ask("PUT", "s", telling("PT10M"), version="2019-03-01")
    await _delete(arm, "1")
    assert await arm.events("s_0") == []
    await arm.advance()
    assert await arm.ids() == ["0", "2"]
    await arm.post("s/manualupgrade", "*")
    started = await _delete(arm, "2")
    assert [each["EventType"] for each in await arm.events("s_0")] == ["Terminate"]
    await arm.advance("PT9M50S")
    assert await arm.status(started) == "InProgress"
    await arm.advance("20s")
    assert await arm.status(started) == "Succeeded"


async def test_it_can_be_turned_off_and_on_again(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    off = {"scheduledEventsProfile": {"terminateNotificationProfile": {"enable": False}}}
    await arm.ask("PATCH", "s", {"properties": {"virtualMachineProfile": off}})
    shown = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    assert "scheduledEventsProfile" not in shown
    await arm.post("s/manualupgrade", "*")
    await _delete(arm, "2")
    assert await arm.events("s_0") == []
    await arm.ask("PATCH", "s", telling("PT15M"))
    await arm.post("s/manualupgrade", "*")
    await _delete(arm, "1")
    assert [each["Resources"] for each in await arm.events("s_0")] == [["s_1"]]


async def test_a_spot_instance_is_not_told(arm: ScaleSetClient) -> None:
    await arm.ask("PUT", "s", body_of(priority="Spot"), 201)
    await arm.events("s_0")
    started = await _delete(arm, "1")
    assert await arm.events("s_0") == []
    await arm.advance()
    assert await arm.status(started) == "Succeeded"


async def test_nobody_is_told_before_anybody_has_asked(arm: ScaleSetClient) -> None:
    await arm.make(**told())
    started = await _delete(arm, "1")
    await arm.advance()
    assert await arm.status(started) == "Succeeded"


async def test_a_delete_asked_twice_is_one(arm: ScaleSetClient) -> None:
    await _told_set(arm)
    first, second = await _delete(arm, "1"), await _delete(arm, "1")
    assert len(await arm.events("s_0")) == 1
    assert await arm.status(second) == "InProgress"
    await arm.advance("6m")
    assert {await arm.status(first), await arm.status(second)} == {"Succeeded"}


async def test_a_delete_of_several_lasts_until_one_that_began_before_is_over(
    arm: ScaleSetClient,
) -> None:
    await _told_set(arm)
    await _delete(arm, "1")
    (event,) = await arm.events("s_0")
    both = await _delete(arm, "0", "1")
    await arm.rig.post(f"/events/{event['EventId']}/cancel", {"reason": "not today"})
    await arm.advance("6m")
    assert await arm.ids() == ["1"]
    assert await arm.status(both) == "Failed"


async def test_one_instance_is_deleted_by_its_own_path_too(arm: ScaleSetClient) -> None:
    await _told_set(arm)
    started = await arm.ask("DELETE", "s/virtualMachines/1", status=202)
    assert [each["Resources"] for each in await arm.events("s_0")] == [["s_1"]]
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    await arm.ask("DELETE", "s/virtualMachines/1", status=204)


async def test_a_flexible_instance_is_told_under_its_name(arm: ScaleSetClient) -> None:
    await arm.make(mode="Flexible", **told())
    one, other = await arm.ids()
    await arm.events(one)
    started = await _delete(arm, other.upper())
    assert [each["Resources"] for each in await arm.events(one)] == [[other]]
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    assert await arm.ids() == [one]


async def test_a_cancelled_delete_is_a_failed_operation(arm: ScaleSetClient) -> None:
    await _told_set(arm)
    started = await _delete(arm, "1")
    (event,) = await arm.events("s_0")
    await arm.rig.post(f"/events/{event['EventId']}/cancel", {"reason": "not today"})
    progress = await arm.progress(started)
    assert (progress["status"], progress["error"]["code"]) == ("Failed", "OperationCanceled")
    assert await arm.capacity() == 2


@pytest.mark.parametrize("mode", ["Automatic", "Rolling"])
async def test_switching_it_off_and_shrinking_in_one_request_warns_those_who_go(
    arm: ScaleSetClient, mode: str
) -> None:
    await _told_set(arm, capacity=3)
    body = telling(enable=False)
    body["properties"]["upgradePolicy"] = {"mode": mode}
    started = await arm.ask("PATCH", "s", {**body, "sku": {"capacity": 1}})
    assert sorted(each["Resources"] for each in await arm.events("s_0")) == [["s_1"], ["s_2"]]
    assert await arm.status(started) == "InProgress"
    await arm.advance("4m")
    assert await arm.ids() == ["0", "1", "2"]
    await arm.advance("2m")
    assert await arm.ids() == ["0"]


async def test_a_template_is_no_way_around_it(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    body = body_of(capacity=0, **told(enable=False))
    body["properties"]["upgradePolicy"] = {"mode": "Automatic"}
    resource = {
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2024-07-01",
        "name": "s",
        **body,
    }
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [resource],
    }
    path = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
    properties = {"mode": "Incremental", "template": template}
    await arm.ask("PUT", path, {"properties": properties}, 201, version="2024-11-01")
    assert len(await arm.events("s_0")) == 3
    assert await arm.ids() == ["0", "1", "2"]


async def test_deleting_the_resource_group_warns_them_too(arm: ScaleSetClient) -> None:
    await _told_set(arm, capacity=3)
    await arm.ask("DELETE", GROUP, status=202, version="2024-11-01")
    assert len(await arm.events("s_0")) == 3
    assert await arm.ids() == ["0", "1", "2"]


async def test_creating_does_not_replace_what_was_declared_meanwhile(
    arm: ScaleSetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await arm.make(capacity=1)
    await arm.ask("DELETE", "s", status=202)
    await arm.advance()
    await arm.get("s", 404)

    async def find_late(*named: Any) -> Any:
        """Between looking and creating, somebody else declares a set of that name."""
        await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 2}]})
        return await scopes_of_resource(*named)

    monkeypatch.setattr(update, "scopes_of_resource", find_late)
    code, message = await arm.refused("PUT", "s", body_of(capacity=1), 409)
    assert code == "Conflict"
    assert "meanwhile" in message
    assert await arm.ids() == ["0", "1"]
