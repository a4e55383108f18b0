"""Pre- and post-maintenance events, from an assignment in ARM to the webhook of a receiver."""

from typing import Any

from tests.azure_api.arm_client import COMPUTE, GROUP, ArmClient, asking
from tests.notifications.receiver import Receiver, receiving

SPACE = "providers/Microsoft.Maintenance"
CONFIGURATION = f"{GROUP}/{SPACE}/maintenanceConfigurations/nightly"


async def assign(arm: ArmClient, owner: str) -> None:
    await arm.answer("PUT", CONFIGURATION, {"location": "local", "properties": {}})
    body = {"properties": {"maintenanceConfigurationId": CONFIGURATION}}
    await arm.put(f"{owner}/{SPACE}/configurationAssignments/a", body)


async def told(receiver: Receiver, messages: int) -> list[list[dict[str, Any]]]:
    await receiver.has(messages)
    return [each.json for each in receiver.requests]


async def subscribe(arm: ArmClient, receiver: Receiver) -> None:
    body = {"name": "grid", "kind": "webhook", "url": receiver.url, "format": "eventgrid"}
    await arm.rig.post("/notifications", body, 201)


async def test_maintenance_under_a_configuration_is_told_before_and_after() -> None:
    async with asking() as arm, receiving() as receiver:
        await assign(arm, f"{COMPUTE}/virtualMachines/db")
        await subscribe(arm, receiver)
        await arm.rig.activate("db")
        event = await arm.rig.schedule("db")
        await arm.rig.post(f"/events/{event['id']}/approve")
        await arm.advance("20m")
        scheduled, started, completed = await told(receiver, 3)
        assert len(started) == 1
        before, after = scheduled[1], completed[1]
        run = before["data"]["correlationId"]
        assert run.startswith(f"{CONFIGURATION}/providers/microsoft.maintenance/applyupdates/2")
        assert before == {
            "id": run,
            "topic": CONFIGURATION,
            "subject": "nightly",
            "data": {
                "correlationId": run,
                "maintenanceConfigurationId": CONFIGURATION,
                "startDateTime": event["notBefore"],
                "endDateTime": before["data"]["endDateTime"],
                "cancellationCutOffDateTime": event["notBefore"],
                "resourceSubscriptionIds": [GROUP.split("/")[2]],
            },
            "eventType": "Microsoft.Maintenance.PreMaintenanceEvent",
            "eventTime": before["eventTime"],
            "dataVersion": "1.0",
            "metadataVersion": "1",
        }
        assert after["eventType"] == "Microsoft.Maintenance.PostMaintenanceEvent"
        assert (after["id"], after["data"]["status"]) == (run, "Succeeded")


async def test_a_vm_of_a_set_has_its_own_assignment_and_owners_raise_none() -> None:
    async with asking() as arm, receiving() as receiver:
        await assign(arm, f"{COMPUTE}/virtualMachines/web-1")
        await subscribe(arm, receiver)
        await arm.rig.activate("web-0")
        await arm.rig.schedule("web-0")
        await arm.rig.schedule("web-1")
        await arm.ask("POST", f"{COMPUTE}/virtualMachines/web-1/redeploy", None, 202)
        messages = await told(receiver, 3)
        assert [len(each) for each in messages] == [1, 2, 1]
