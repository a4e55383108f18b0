"""Maintenance configurations, their assignments, and updates that are applied early."""

from typing import Any

from fairwarning.azure_api.app import role_of
from fairwarning.azure_api.paths import resource_path
from fairwarning.operator_api.auth import Role
from tests.azure_api.arm_client import COMPUTE, GROUP, S
from tests.azure_api.scale_set_client import ScaleSetClient

SPACE = "providers/Microsoft.Maintenance"
CONFIGURATION = f"{GROUP}/{SPACE}/maintenanceConfigurations/nightly"
DB = f"{COMPUTE}/virtualMachines/db"
ASSIGNMENT = f"{DB}/{SPACE}/configurationAssignments/a"


def configuration(**more: Any) -> dict[str, Any]:
    window = {"startDateTime": "2026-02-01 22:00", "duration": "02:00", "timeZone": "UTC"}
    return {
        "location": "local",
        "properties": {"maintenanceScope": "Host", "maintenanceWindow": window, **more},
    }


def to(configuration: str = CONFIGURATION) -> dict[str, Any]:
    return {"properties": {"maintenanceConfigurationId": configuration}}


async def test_a_configuration_is_kept_and_assigned(arm: ScaleSetClient) -> None:
    made = await arm.put(CONFIGURATION, configuration())
    assert made["type"] == "Microsoft.Maintenance/maintenanceConfigurations"
    assert made["properties"]["visibility"] == "Custom"
    for place in (S, GROUP):
        listed = await arm.get(f"{place}/{SPACE}/maintenanceConfigurations")
        assert listed["value"] == [made]
    assigned = await arm.put(ASSIGNMENT, to(CONFIGURATION.upper()))
    assert assigned["properties"] == {"maintenanceConfigurationId": CONFIGURATION, "resourceId": DB}
    assert await arm.get(ASSIGNMENT) == assigned
    for place in (S, GROUP, DB):
        listed = await arm.get(f"{place}/{SPACE}/configurationAssignments")
        assert listed["value"] == [assigned]
    await arm.ask("PUT", ASSIGNMENT, to(), 200)
    await arm.ask("DELETE", ASSIGNMENT)
    await arm.ask("DELETE", ASSIGNMENT, status=204)
    await arm.get(ASSIGNMENT, 404)


async def test_bad_configurations_and_assignments_are_refused(arm: ScaleSetClient) -> None:
    await arm.refused("PUT", CONFIGURATION, configuration(maintenanceScope="Moon"))
    await arm.refused("PUT", CONFIGURATION, configuration(maintenanceWindow={"duration": [2]}))
    await arm.refused("PUT", ASSIGNMENT, to(), 404)
    await arm.put(CONFIGURATION, configuration())
    for bad in ({}, to("x"), to(DB)):
        await arm.refused("PUT", ASSIGNMENT, bad)
    await arm.refused("PUT", ASSIGNMENT.replace("/db/", "/none/"), to(), 404)
    await arm.refused("PUT", f"{GROUP}/{SPACE}/configurationAssignments/a", to())


async def test_pending_maintenance_is_an_update_that_can_be_applied(arm: ScaleSetClient) -> None:
    assert (await arm.get(f"{DB}/{SPACE}/updates"))["value"] == []
    await arm.rig.activate("db")
    event = await arm.rig.schedule("db")
    (update,) = (await arm.get(f"{DB}/{SPACE}/updates"))["value"]
    assert (update["impactType"], update["status"]) == ("Restart", "Pending")
    applied = await arm.put(f"{DB}/{SPACE}/applyUpdates/default", None)
    assert applied["properties"]["status"] == "InProgress"
    assert (await arm.rig.get(f"/events/{event['id']}"))["startCause"] == "approved"
    await arm.advance("20m")
    shown = await arm.get(f"{DB}/{SPACE}/applyUpdates/{applied['name']}")
    assert shown["properties"]["status"] == "Completed"
    assert shown["id"] == applied["id"]
    spelled_otherwise = f"{DB.removesuffix('db')}DB/{SPACE}/applyUpdates/{applied['name']}"
    assert (await arm.get(spelled_otherwise))["properties"]["status"] == "Completed"
    await arm.get(f"{COMPUTE}/virtualMachines/web-0/{SPACE}/applyUpdates/{applied['name']}", 404)


async def test_updates_of_sets_and_of_their_instances(arm: ScaleSetClient) -> None:
    await arm.rig.activate("workers_0")
    await arm.rig.schedule("workers_1")
    sets = f"{COMPUTE}/virtualMachineScaleSets/workers"
    for owner, count in (
        (sets, 1),
        (f"{sets}/virtualMachines/1", 1),
        (f"{sets}/virtualMachines/0", 0),
    ):
        assert len((await arm.get(f"{owner}/{SPACE}/updates"))["value"]) == count, owner
    assert (await arm.get(f"{COMPUTE}/availabilitySets/web/{SPACE}/updates"))["value"] == []
    await arm.refused("GET", f"{COMPUTE}/availabilitySets/none/{SPACE}/updates", status=404)
    await arm.refused("GET", f"{COMPUTE}/disks/d/{SPACE}/updates")
    await arm.refused("GET", f"{GROUP}/{SPACE}/updates")
    await arm.refused("PUT", f"{sets}/{SPACE}/applyUpdates/other")


def test_an_approver_applies_updates_and_configures_nothing() -> None:
    for path, role in (
        (f"{DB}/{SPACE}/applyUpdates/default", Role.APPROVER),
        (f"{DB}/{SPACE}/scheduledevents/x/acknowledge", Role.APPROVER),
        (f"{DB}/{SPACE}/scheduledevents", Role.APPROVER),
        (CONFIGURATION, Role.OPERATOR),
        (ASSIGNMENT, Role.OPERATOR),
    ):
        assert role_of("PUT", resource_path(path)) is role, path
