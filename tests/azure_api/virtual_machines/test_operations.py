"""Operations on VMs: in progress until their event is over, with the events that Azure raises."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.azure_api.arm_client import COMPUTE, running_client
from tests.azure_api.vm_client import NICS, SETS, VMS, VmClient, uses, vm_body


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[VmClient]:
    async with running_client(VmClient) as found:
        yield found


@pytest.mark.parametrize(
    ("verb", "type", "word"),
    [("restart", "Reboot", "restarted"), ("redeploy", "Redeploy", "redeployed")],
)
async def test_an_operation_lasts_as_long_as_its_event(
    azure: VmClient, verb: str, type: str, word: str
) -> None:
    """Of a VM that only the fleet declared."""
    await azure.rig.activate("db")
    url = await azure.begin("POST", f"{VMS}/db/{verb}")
    (event,) = await azure.events("db")
    assert (event["EventType"], event["EventSource"]) == (type, "User")
    assert (event["EventStatus"], event["Resources"]) == ("Scheduled", ["db"])
    assert event["Description"] == (
        f"Virtual machine is going to be {word} as requested by authorized user."
    )
    assert await azure.status(url) == "InProgress"
    shown = await azure.get(f"{VMS}/db")
    assert shown["properties"]["provisioningState"] == "Updating"
    await azure.advance("9m")
    assert await azure.status(url) == "InProgress"
    await azure.advance("8m")
    assert await azure.status(url) == "Succeeded"
    assert await azure.events("db") == []
    answer = await azure.http.get(f"{url}&monitor=true")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_an_approval_ends_the_wait(azure: VmClient) -> None:
    await azure.vm("box")
    await azure.rig.activate("box")
    url = await azure.begin("POST", f"{VMS}/box/restart")
    (event,) = await azure.events("box")
    await azure.rig.post(f"/events/{event['EventId']}/approve")
    assert (await azure.events("box"))[0]["EventStatus"] == "Started"
    assert await azure.status(url) == "InProgress"
    await azure.advance("1m")
    assert await azure.status(url) == "Succeeded"


async def test_a_cancelled_event_fails_its_operation(azure: VmClient) -> None:
    await azure.rig.activate("db")
    url = await azure.begin("POST", f"{VMS}/db/redeploy")
    (event,) = await azure.events("db")
    await azure.rig.post(f"/events/{event['EventId']}/cancel", {"reason": "not today"})
    found = (await azure.http.get(url)).json()
    assert found["status"] == "Failed"
    assert found["error"]["code"] == "OperationCanceled"
    assert "not today" in found["error"]["message"]


async def test_policy_approves_at_once(azure: VmClient) -> None:
    policy = {"userInitiatedReboot": {"automaticallyApprove": "true"}}
    await azure.vm("box", scheduledEventsPolicy=policy)
    await azure.rig.activate("box")
    await azure.begin("POST", f"{VMS}/box/restart")
    assert (await azure.events("box"))[0]["EventStatus"] == "Started"
    await azure.advance("1m")
    await azure.patch(
        f"{VMS}/box", {"properties": {"scheduledEventsPolicy": {"userInitiatedReboot": {}}}}
    )
    await azure.begin("POST", f"{VMS}/box/restart")
    assert (await azure.events("box"))[0]["EventStatus"] == "Scheduled"


async def test_where_nobody_asked_it_happens_at_once(azure: VmClient) -> None:
    url = await azure.begin("POST", f"{VMS}/db/redeploy")
    assert await azure.status(url) == "InProgress"
    await azure.advance("2m")
    assert await azure.status(url) == "Succeeded"


@pytest.mark.parametrize(
    ("verb", "code"),
    [("deallocate", "PowerState/deallocated"), ("powerOff", "PowerState/stopped")],
)
async def test_power_goes_and_comes_without_an_event(azure: VmClient, verb: str, code: str) -> None:
    await azure.rig.activate("db")

    async def power() -> str:
        view = await azure.get(f"{VMS}/db/instanceView")
        return str(view["statuses"][-1]["code"])

    url = await azure.begin("POST", f"{VMS}/db/{verb}")
    assert await azure.events("db") == []
    await azure.advance("1m")
    assert (await azure.status(url), await power()) == ("Succeeded", code)
    await azure.begin("POST", f"{VMS}/db/start")
    await azure.advance("1m")
    assert await power() == "PowerState/running"


async def test_a_reimage_of_a_vm_is_not_announced(azure: VmClient) -> None:
    await azure.rig.activate("db")
    url = await azure.begin("POST", f"{VMS}/db/reimage")
    assert await azure.events("db") == []
    await azure.advance("1m")
    assert await azure.status(url) == "Succeeded"


async def test_reapply_has_nothing_to_do(azure: VmClient) -> None:
    assert await azure.status(await azure.begin("POST", f"{VMS}/db/reapply")) == "Succeeded"


async def test_only_spot_is_evicted(azure: VmClient) -> None:
    code, message = await azure.refused("POST", f"{VMS}/db/simulateEviction", status=409)
    assert code == "OperationNotAllowed"
    assert "allowed only for Spot Virtual Machines" in message
    made = await azure.vm("cheap", priority="Spot", evictionPolicy="Delete")
    assert made["properties"]["priority"] == "Spot"
    await azure.rig.activate("cheap")
    await azure.ask("POST", f"{VMS}/cheap/simulateEviction", status=204)
    assert (await azure.events("cheap"))[0]["EventType"] == "Preempt"
    await azure.advance("1m")
    await azure.ask("GET", f"{VMS}/cheap", status=404)
    await azure.vm("cheap")
    assert "priority" not in (await azure.get(f"{VMS}/cheap"))["properties"]


async def test_maintenance_can_be_had_early(azure: VmClient) -> None:
    code, message = await azure.refused("POST", f"{VMS}/web-0/performMaintenance", status=409)
    assert code == "OperationNotAllowed"
    assert "no maintenance is pending" in message
    await azure.rig.activate("web-0")
    await azure.rig.schedule("web-0")
    view = await azure.get(f"{VMS}/web-0/instanceView")
    assert view["maintenanceRedeployStatus"]["isCustomerInitiatedMaintenanceAllowed"] is True
    url = await azure.begin("POST", f"{VMS}/web-0/performMaintenance")
    assert (await azure.events("web-0"))[0]["EventStatus"] == "Started"
    await azure.advance("1m")
    assert await azure.status(url) == "Succeeded"


async def test_the_maintenance_that_can_be_had_early_is_the_next(azure: VmClient) -> None:
    late = await azure.rig.schedule("db", type="Reboot", notice="5h")
    soon = await azure.rig.schedule("db", type="Freeze", notice="1h")
    await azure.begin("POST", f"{VMS}/db/performMaintenance")
    approved = [
        (await azure.rig.get(f"/events/{each['id']}"))["approvals"] for each in (soon, late)
    ]
    assert [bool(each) for each in approved] == [True, False]


async def test_a_vm_with_other_plans_is_deleted_all_the_same(azure: VmClient) -> None:
    await azure.vm("box")
    await azure.rig.schedule("box", notice="5h")
    url = await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("2m")
    assert await azure.status(url) == "Succeeded"
    await azure.ask("GET", f"{VMS}/box", status=404)


async def test_a_change_that_comes_while_a_vm_is_being_deleted_waits_and_is_refused(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.vm("box")
    store = azure.rig.node.store
    real, is_first = store.keep, iter((True,))

    changes: list[asyncio.Task[tuple[str, str]]] = []

    async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
        if kind == "arm" and key.endswith("/virtualmachines/box") and next(is_first, False):
            change = azure.refused("PATCH", f"{VMS}/box", {"zones": ["1"]}, 409)
            changes.append(asyncio.create_task(change))
        return await real(kind, key, body, **named)

    monkeypatch.setattr(store, "keep", keep)
    await azure.begin("DELETE", f"{VMS}/box")
    code, _ = await changes[0]
    assert code == "OperationNotAllowed"


async def test_an_unknown_action_is_refused(azure: VmClient) -> None:
    code, message = await azure.refused("POST", f"{VMS}/db/capture", status=404)
    assert code == "InvalidAction"
    assert "'capture'" in message
    assert (await azure.refused("POST", f"{VMS}/none/restart", status=404))[0] == "ResourceNotFound"


async def test_a_deleted_vm_goes_and_its_interface_stays(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    await azure.vm("box", networkProfile=uses("nic"))
    url = await azure.begin("DELETE", f"{VMS}/box")
    assert await azure.status(url) == "InProgress"
    shown = await azure.get(f"{VMS}/box")
    assert shown["properties"]["provisioningState"] == "Deleting"
    code, message = await azure.refused("PUT", f"{VMS}/box", vm_body(), 409)
    assert code == "OperationNotAllowed"
    assert "marked for deletion" in message
    again = await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("1m")
    assert [await azure.status(each) for each in (url, again)] == ["Succeeded"] * 2
    await azure.ask("GET", f"{VMS}/box", status=404)
    await azure.ask("DELETE", f"{VMS}/box", status=204)
    assert azure.rig.node.engine.views.by_address("10.9.0.4") is None
    nic = (await azure.get(f"{NICS}/nic"))["properties"]
    assert "virtualMachine" not in nic
    assert nic["ipConfigurations"][0]["properties"]["privateIPAddress"] == "10.9.0.4"


async def test_a_name_can_be_used_again(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    body = {**vm_body(networkProfile=uses("nic"), licenseType="None"), "tags": {"life": "first"}}
    await azure.put(f"{VMS}/box", body)
    await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("1m")
    made = await azure.vm("box", networkProfile=uses("nic"))
    assert made["tags"] == {}
    assert "licenseType" not in made["properties"]
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.4"]
    assert (await azure.get(f"{NICS}/nic"))["properties"]["virtualMachine"]


async def test_a_namesake_from_elsewhere_inherits_nothing(azure: VmClient) -> None:
    await azure.put(f"{VMS}/box", vm_body(licenseType="None"))
    await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("1m")
    await azure.rig.post("/fleet", {"vm": [{"name": "box"}]})
    assert "licenseType" not in (await azure.get(f"{VMS}/box"))["properties"]


async def test_a_member_leaves_its_set_and_may_come_back(azure: VmClient) -> None:
    await azure.begin("DELETE", f"{VMS}/web-1")
    await azure.advance("1m")
    members = (await azure.get(f"{SETS}/web"))["properties"]["virtualMachines"]
    assert [each["id"].rpartition("/")[2] for each in members] == ["web-0", "web-2", "web-3"]
    await azure.vm("web-1", availabilitySet={"id": f"{SETS}/web"})
    assert (await azure.instance("web-1"))["updateDomain"] == 1


async def test_a_deletion_that_was_cancelled_leaves_the_vm(azure: VmClient) -> None:
    """In a scale set that gives notice, of which a VM of its own is told too."""
    flexible = f"{COMPUTE}/virtualMachineScaleSets/flex"
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT5M"}}
    body = {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "capacity": 0},
        "properties": {
            "orchestrationMode": "Flexible",
            "virtualMachineProfile": {"scheduledEventsProfile": notice},
        },
    }
    await azure.put(flexible, body)
    await azure.vm("box", virtualMachineScaleSet={"id": flexible})
    await azure.rig.activate("box")
    url = await azure.begin("DELETE", f"{VMS}/box")
    (event,) = await azure.events("box")
    assert event["EventType"] == "Terminate"
    assert (await azure.refused("POST", f"{VMS}/box/restart", status=409))[0] == (
        "OperationNotAllowed"
    )
    await azure.rig.post(f"/events/{event['EventId']}/cancel", {})
    assert await azure.status(url) == "Failed"
    shown = await azure.patch(f"{VMS}/box", {"tags": {"still": "here"}})
    assert shown["properties"]["provisioningState"] == "Succeeded"
    url = await azure.begin("DELETE", f"{VMS}/box")
    await azure.advance("6m")
    assert await azure.status(url) == "Succeeded"
    await azure.ask("GET", f"{VMS}/box", status=404)
