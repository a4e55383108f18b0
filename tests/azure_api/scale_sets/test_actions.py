"""What is asked of several instances at once: restart, reimage, power, maintenance, upgrade."""

from typing import Any

import pytest

from tests.azure_api.scale_set_client import ScaleSetClient, told


async def _watched_set(arm: ScaleSetClient, capacity: int = 2, **more: Any) -> None:
    await arm.make(capacity=capacity, **more)
    await arm.events("s_0")


async def _power(arm: ScaleSetClient, id: str) -> str:
    view = await arm.get(f"s/virtualMachines/{id}/instanceView")
    return str(view["statuses"][-1]["code"])


@pytest.mark.parametrize(("verb", "type"), [("restart", "Reboot"), ("redeploy", "Redeploy")])
async def test_each_instance_is_told_and_the_operation_waits(
    arm: ScaleSetClient, verb: str, type: str
) -> None:
    await _watched_set(arm)
    started = await arm.post(f"s/{verb}", "*")
    events = await arm.events("s_0", "2020-07-01")
    assert {each["EventType"] for each in events} == {type}
    assert {each["EventSource"] for each in events} == {"User"}
    assert all("as requested by authorized user" in each["Description"] for each in events)
    assert sorted(each["Resources"] for each in events) == [["s_0"], ["s_1"]]
    for each in events[:1]:
        await arm.approve("s_0", each["EventId"])
    await arm.advance("2m")
    assert await arm.status(started) == "InProgress"
    await arm.advance("20m")
    assert await arm.status(started) == "Succeeded"


async def test_without_a_body_it_is_everyone(arm: ScaleSetClient) -> None:
    await _watched_set(arm, 3)
    await arm.post("s/restart")
    assert len(await arm.events("s_0")) == 3


@pytest.mark.parametrize("path", ["s/restart", "s/virtualMachines/%2A/restart"])
async def test_everyone_is_who_is_to_stay(arm: ScaleSetClient, path: str) -> None:
    await _watched_set(arm, 3, **told())
    await arm.post("s/delete", "1")
    await arm.post(path)
    reboots = [each for each in await arm.events("s_0") if each["EventType"] == "Reboot"]
    assert sorted(each["Resources"] for each in reboots) == [["s_0"], ["s_2"]]


async def test_the_location_answers_with_nothing_once_it_is_over(arm: ScaleSetClient) -> None:
    await _watched_set(arm)
    started = await arm.post("s/restart", "0")
    assert int(started.headers["Retry-After"]) >= 1
    assert (await arm.http.get(started.headers["Location"])).status_code == 202
    await arm.advance("20m")
    over = await arm.http.get(started.headers["Location"])
    assert (over.status_code, over.content) == (200, b"")


async def test_an_unknown_instance_is_refused_and_nobody_is_touched(arm: ScaleSetClient) -> None:
    await _watched_set(arm)
    code, message = await arm.refused("POST", "s/restart", {"instanceIds": ["0", "7"]})
    assert code == "InvalidParameter"
    assert message == (
        "The provided instanceId 7 is not an active Virtual Machine Scale Set VM instanceId."
    )
    assert await arm.events("s_0") == []


@pytest.mark.parametrize("verb", ["delete", "manualupgrade"])
async def test_some_need_to_be_told_whom(arm: ScaleSetClient, verb: str) -> None:
    await arm.make()
    bodies: list[Any] = [None, {}, {"instanceIds": []}]
    for body in bodies:
        assert (await arm.refused("POST", f"s/{verb}", body))[0] == "InvalidParameter"
    assert await arm.ids() == ["0", "1"]


async def test_everyone_can_be_deleted(arm: ScaleSetClient) -> None:
    await _watched_set(arm, **told())
    await arm.post("s/delete", "1")
    started = await arm.post("s/delete", "*")
    assert len(await arm.events("s_0")) == 2
    await arm.advance("6m")
    assert await arm.status(started) == "Succeeded"
    assert await arm.capacity() == 0


async def test_too_many_pending_operations_are_refused_all_together(arm: ScaleSetClient) -> None:
    await _watched_set(arm, 11)
    code, _ = await arm.refused("POST", "s/restart", {"instanceIds": ["*"]}, 409)
    assert code == "OperationNotAllowed"
    assert await arm.events("s_0") == []


async def test_power_goes_off_and_on_without_an_event(arm: ScaleSetClient) -> None:
    await _watched_set(arm)
    assert await _power(arm, "1") == "PowerState/running"
    for verb, power in (
        ("poweroff", "stopped"),
        ("deallocate", "deallocated"),
        ("start", "running"),
    ):
        started = await arm.post(f"s/{verb}", "1")
        assert await arm.events("s_0") == []
        await arm.advance()
        assert await arm.status(started) == "Succeeded"
        assert await _power(arm, "1") == f"PowerState/{power}"
        assert await _power(arm, "0") == "PowerState/running"


@pytest.mark.parametrize("verb", ["reimage", "reimageall"])
async def test_a_reimage_is_announced_only_if_the_model_says_so(
    arm: ScaleSetClient, verb: str
) -> None:
    await _watched_set(arm)
    await arm.post(f"s/{verb}", "1")
    assert await arm.events("s_0") == []
    await arm.advance()
    notice = {"osImageNotificationProfile": {"notBeforeTimeout": "PT15M", "enable": True}}
    profile = {"virtualMachineProfile": {"scheduledEventsProfile": notice}}
    await arm.ask("PATCH", "s", {"properties": profile})
    await arm.post("s/manualupgrade", "*")
    started = await arm.post(f"s/{verb}", "1")
    (event,) = await arm.events("s_0")
    assert (event["EventType"], event["Resources"]) == ("Reboot", ["s_1"])
    await arm.advance("16m")
    assert await arm.status(started) == "Succeeded"


async def test_a_reimage_brings_the_latest_model(arm: ScaleSetClient) -> None:
    await arm.make()
    image = {"storageProfile": {"imageReference": {"sku": "24.04"}}}
    await arm.ask("PATCH", "s", {"properties": {"virtualMachineProfile": image}})
    await arm.post("s/reimage", "1")
    await arm.advance()
    behind = await arm.get("s/virtualMachines", filter="properties/latestModelApplied eq false")
    assert [each["instanceId"] for each in behind["value"]] == ["0"]


async def test_maintenance_can_be_had_at_once(arm: ScaleSetClient) -> None:
    await arm.events("workers_0")
    for number in range(2):
        await arm.rig.schedule(f"workers_{number}")
    view = await arm.get("workers/virtualMachines/1/instanceView")
    assert view["maintenanceRedeployStatus"]["isCustomerInitiatedMaintenanceAllowed"] is True
    started = await arm.post("workers/performMaintenance", "1")
    by_name = {each["Resources"][0]: each for each in await arm.events("workers_0")}
    assert by_name["workers_1"]["EventStatus"] == "Started"
    assert by_name["workers_0"]["EventStatus"] == "Scheduled"
    assert await arm.status(started) == "InProgress"
    await arm.advance()
    assert await arm.status(started) == "Succeeded"
    view = await arm.get("workers/virtualMachines/1/instanceView")
    assert "maintenanceRedeployStatus" not in view


async def test_without_maintenance_there_is_nothing_to_do(arm: ScaleSetClient) -> None:
    await _watched_set(arm)
    await arm.post("s/restart", "0")
    started = await arm.post("s/performMaintenance")
    assert await arm.status(started) == "Succeeded"
    assert [each["EventStatus"] for each in await arm.events("s_0")] == ["Scheduled"]


async def test_an_action_that_azure_has_and_we_do_not_is_refused(arm: ScaleSetClient) -> None:
    await arm.make()
    code, _ = await arm.refused("POST", "s/convertToSinglePlacementGroup", {}, 404)
    assert code == "InvalidAction"


async def test_an_action_needs_a_set(arm: ScaleSetClient) -> None:
    code, _ = await arm.refused("POST", "nobody/restart", {}, 404)
    assert code == "ResourceNotFound"


async def test_instances_are_named_in_any_case_and_told_once(arm: ScaleSetClient) -> None:
    await arm.make(mode="Flexible", capacity=2)
    first, second = await arm.ids()
    await arm.events(first)
    await arm.post("s/restart", first.upper(), first)
    assert [each["Resources"] for each in await arm.events(first)] == [[first]]
    assert second not in str(await arm.events(first))


@pytest.mark.parametrize("ids", ["0", {"0": 1}, [["0"]], [None]])
async def test_ids_that_are_no_list_of_texts_are_refused(arm: ScaleSetClient, ids: object) -> None:
    await _watched_set(arm)
    code, message = await arm.refused("POST", "s/restart", {"instanceIds": ids})
    assert code in ("InvalidParameter", "InvalidRequestFormat")
    assert "instanceIds" in message
    assert await arm.events("s_0") == []
