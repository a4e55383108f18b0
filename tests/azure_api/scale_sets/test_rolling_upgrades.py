"""Rolling upgrades, sizes and orchestration services of a scale set."""

from tests.azure_api.scale_set_client import ScaleSetClient, telling

LATEST = "s/rollingUpgrades/latest"


async def test_a_rolling_upgrade_brings_the_latest_model_and_is_remembered(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=2)
    assert (await arm.refused("GET", LATEST, status=404))[0] == "NotFound"
    await arm.ask("PATCH", "s", telling("PT7M"))
    assert (await arm.rig.get("/instances/s_0"))["terminateNotice"] is None
    started = await arm.ask("POST", "s/osRollingUpgrade", None, 202)
    assert await arm.status(started) == "Succeeded"
    assert (await arm.rig.get("/instances/s_1"))["terminateNotice"] == "PT7M"
    found = await arm.get(LATEST)
    assert found["location"] == "local"
    assert found["type"] == "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades"
    properties = found["properties"]
    assert properties["runningStatus"]["code"] == "Completed"
    assert properties["progress"]["successfulInstanceCount"] == 2
    assert properties["policy"]["maxBatchInstancePercent"] == 20
    code, _ = await arm.refused("POST", "s/rollingUpgrades/cancel", status=409)
    assert code == "OperationNotAllowed"


async def test_a_new_set_of_the_same_name_has_had_no_upgrade(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=0)
    await arm.ask("POST", "s/osRollingUpgrade", None, 202)
    await arm.ask("DELETE", "s", status=202)
    await arm.make("s", capacity=0)
    await arm.refused("GET", LATEST, status=404)


async def test_the_sizes_of_a_set_are_listed(arm: ScaleSetClient) -> None:
    found = (await arm.get("workers/skus"))["value"]
    assert {each["resourceType"] for each in found} == {"Microsoft.Compute/virtualMachineScaleSets"}
    assert "Standard_D2s_v5" in [each["sku"]["name"] for each in found]
    assert found[0]["capacity"]["scaleType"] == "Automatic"
    await arm.refused("GET", "none/skus", status=404)


async def test_a_service_is_suspended_and_resumed(arm: ScaleSetClient) -> None:
    assert "orchestrationServices" not in await arm.get("workers/instanceView")
    for action, state in (("Suspend", "Suspended"), ("resume", "Running")):
        body = {"serviceName": "AutomaticRepairs", "action": action}
        started = await arm.ask("POST", "workers/setOrchestrationServiceState", body, 202)
        assert await arm.status(started) == "Succeeded"
        (service,) = (await arm.get("workers/instanceView"))["orchestrationServices"]
        assert service == {"serviceName": "AutomaticRepairs", "serviceState": state}
    for bad in ({}, {"serviceName": "AutomaticRepairs", "action": "Stop"}, {"serviceName": 1}):
        await arm.refused("POST", "workers/setOrchestrationServiceState", bad)
