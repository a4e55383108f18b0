"""A scale set with capacity 0 is a resource, whoever made and emptied it."""

from tests.azure_api.arm_client import GROUP, S
from tests.azure_api.scale_set_client import ScaleSetClient


async def names(arm: ScaleSetClient) -> list[str]:
    return [each["name"] for each in (await arm.get(arm.base))["value"]]


async def empty(arm: ScaleSetClient, name: str = "workers") -> None:
    await arm.rig.post(f"/scopes/{name}/scale", {"capacity": 0}, 202)
    await arm.advance("6m")


async def test_a_declared_set_that_was_emptied_stays_in_arm(arm: ScaleSetClient) -> None:
    await empty(arm)
    assert "workers" in await names(arm)
    found = await arm.get("workers")
    assert (found["sku"]["capacity"], found["properties"]["orchestrationMode"]) == (0, "Uniform")
    assert await arm.ids("workers") == []
    rows = (await arm.get(f"{GROUP}/resources"))["value"]
    assert "workers" in [each["name"] for each in rows]
    body = {"location": "local", "sku": {"capacity": 1}}
    await arm.ask("PATCH", "workers", body)
    assert await arm.ids("workers") == ["3"]


async def test_a_deleted_empty_set_is_gone_everywhere(arm: ScaleSetClient) -> None:
    await empty(arm)
    await arm.ask("DELETE", "workers", status=202)
    assert "workers" not in await names(arm)
    await arm.get("workers", 404)
    assert (await arm.rig.get("/scopes/workers", 404))["code"] == "unknown-scope"


async def test_a_set_that_was_made_here_and_deleted_by_an_operator_is_gone(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=0)
    assert (await arm.rig.get("/scopes/s"))["capacity"] == 0
    await arm.rig.delete("/scopes/s")
    await arm.get("s", 404)
    assert "s" not in await names(arm)
    assert "s" not in [each["name"] for each in (await arm.get(f"{GROUP}/resources"))["value"]]
    made = await arm.make("s", capacity=1)
    assert made["sku"]["capacity"] == 1


async def test_a_group_with_only_an_empty_set_exists_and_is_deleted_with_it(
    arm: ScaleSetClient,
) -> None:
    await arm.put_group("idle")
    path = arm.base.replace("/default/", "/idle/")
    body = {"location": "westeurope", "sku": {"name": "Standard_D2s_v5", "capacity": 0}}
    await arm.put(f"{path}/empty", body)
    await arm.ask("DELETE", f"{S}/resourceGroups/idle", status=202)
    await arm.get(f"{S}/resourceGroups/idle", 404)
    assert (await arm.rig.get("/scopes/empty", 404))["code"] == "unknown-scope"
