"""Protected instances stay when their set shrinks or acts on all of its instances."""

from typing import Any

from tests.azure_api.scale_set_client import ScaleSetClient, told

CARD = "virtualMachines"


async def protect(
    arm: ScaleSetClient, instance: str, name: str = "s", **policy: bool
) -> dict[str, Any]:
    path = f"{name}/{CARD}/{instance}"
    found = await arm.get(path)
    body = {**found, "properties": {**found.get("properties", {}), "protectionPolicy": policy}}
    answer = await arm.ask("PUT", path, body)
    assert await arm.status(answer) == "Succeeded"
    return dict(answer.json())


async def shrink(arm: ScaleSetClient, capacity: int) -> None:
    await arm.ask("PATCH", "s", {"sku": {"capacity": capacity}})
    await arm.advance("6m")


async def test_a_protection_is_shown_and_ends(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=2)
    assert "protectionPolicy" not in (await arm.get(f"s/{CARD}/0"))["properties"]
    shown = await protect(arm, "0", protectFromScaleIn=True)
    assert shown["properties"]["protectionPolicy"] == {
        "protectFromScaleIn": True,
        "protectFromScaleSetActions": False,
    }
    assert (await arm.get(f"s/{CARD}/0"))["properties"] == shown["properties"]
    seen = await arm.rig.get("/instances/s_0")
    assert seen["protectedFrom"] == ["scale-in"]
    await protect(arm, "0", protectFromScaleIn=False)
    assert "protectionPolicy" not in (await arm.get(f"s/{CARD}/0"))["properties"]


async def test_the_next_highest_goes_instead_of_a_protected_one(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=4, **told())
    await arm.events("s_0")
    await protect(arm, "3", protectFromScaleIn=True)
    await protect(arm, "1", protectFromScaleSetActions=True)
    await arm.ask("PATCH", "s", {"sku": {"capacity": 3}})
    (event,) = await arm.events("s_0")
    assert (event["EventType"], event["Resources"]) == ("Terminate", ["s_2"])
    await arm.advance("6m")
    assert await arm.ids() == ["0", "1", "3"]
    await shrink(arm, 2)
    assert await arm.ids() == ["1", "3"]


async def test_a_set_does_not_shrink_below_its_protected_instances(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=2)
    for each in ("0", "1"):
        await protect(arm, each, protectFromScaleIn=True)
    code, message = await arm.refused("PATCH", "s", {"sku": {"capacity": 1}}, 409)
    assert code == "OperationNotAllowed"
    assert message == (
        "scale set 's' cannot shrink to 1: 2 of its instances are protected from scale-in (s_0, "
        "s_1); end their protection, or delete them by name"
    )
    plan = await arm.rig.post("/scopes/s/scale/plan", {"capacity": 1}, 409)
    assert plan["code"] == "instance-protected"
    assert (await arm.rig.post("/scopes/s/scale", {"capacity": 1}, 409))["code"] == plan["code"]
    assert await arm.ids() == ["0", "1"]


async def test_every_way_to_shrink_a_set_heeds_the_protection(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=4)
    await protect(arm, "3", protectFromScaleIn=True)
    plan = await arm.rig.post("/scopes/s/scale/plan", {"capacity": 3})
    assert plan["removes"] == ["s_2"]
    await arm.rig.post("/scopes/s/scale", {"capacity": 3}, 202)
    await arm.advance("6m")
    assert await arm.ids() == ["0", "1", "3"]
    resource = {"name": "s", "capacity": 2, "orchestration": "uniform"}
    await arm.rig.post("/fleet", {"scale_set": [resource]})
    assert await arm.ids() == ["0", "3"]
    assert (await arm.rig.get("/instances/s_3"))["protectedFrom"] == ["scale-in"]


async def test_protection_blocks_neither_a_deletion_by_name_nor_that_of_the_set(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=2)
    for each in ("0", "1"):
        await protect(arm, each, protectFromScaleIn=True, protectFromScaleSetActions=True)
    await arm.post("s/delete", "1")
    await arm.advance()
    assert await arm.ids() == ["0"]
    await arm.ask("DELETE", "s", status=202)
    await arm.advance()
    await arm.get("s", 404)


async def test_an_action_on_the_whole_set_leaves_out_who_is_protected_from_it(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=3)
    await arm.events("s_0")
    await protect(arm, "1", protectFromScaleSetActions=True)
    await protect(arm, "2", protectFromScaleIn=True)
    await arm.post("s/restart")
    events = await arm.events("s_0")
    assert sorted(each["Resources"][0] for each in events) == ["s_0", "s_2"]
    await arm.advance("20m")
    await arm.ask("POST", f"s/{CARD}/*/deallocate", None, 202)
    await arm.advance("20m")
    power = {n: (await arm.rig.get(f"/instances/s_{n}"))["power"] for n in range(3)}
    assert power == {0: "deallocated", 1: "running", 2: "deallocated"}
    await arm.post("s/restart", "1")
    assert [each["Resources"] for each in await arm.events("s_0")] == [["s_1"]]


async def test_a_new_model_does_not_reach_who_is_protected_from_actions(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=2)
    await protect(arm, "1", protectFromScaleSetActions=True)
    automatic = {"upgradePolicy": {"mode": "Automatic"}, "virtualMachineProfile": told("PT7M")}
    await arm.ask("PATCH", "s", {"properties": automatic})
    notices = [(await arm.rig.get(f"/instances/s_{n}"))["terminateNotice"] for n in range(2)]
    assert notices == ["PT7M", None]
    await arm.post("s/manualupgrade", "*")
    assert (await arm.rig.get("/instances/s_1"))["terminateNotice"] is None
    await arm.post("s/manualupgrade", "1")
    assert (await arm.rig.get("/instances/s_1"))["terminateNotice"] == "PT7M"


async def test_a_flexible_instance_can_be_protected(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=2, mode="Flexible")
    last = (await arm.ids())[-1]
    await protect(arm, last, protectFromScaleIn=True)
    await shrink(arm, 1)
    assert await arm.ids() == [last]
    old = {"properties": {"protectionPolicy": {"protectFromScaleIn": True}}}
    code, message = await arm.refused("PUT", f"s/{CARD}/{last}", old, version="2022-11-01")
    assert (code, "2023-09-01" in message) == ("BadRequest", True)


async def test_bad_protections_are_refused(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=1)
    bad: tuple[Any, ...] = (1, [], {"protectFromScaleIn": "perhaps"})
    for policy in bad:
        await arm.refused("PUT", f"s/{CARD}/0", {"properties": {"protectionPolicy": policy}})
    good = {"properties": {"protectionPolicy": {"protectFromScaleIn": "true"}}}
    await arm.refused("PUT", f"s/{CARD}/9", good, 404)
    code, message = await arm.refused("PUT", f"s/{CARD}/0", good, version="2018-10-01")
    assert code == "BadRequest"
    assert "Could not find member 'protectionPolicy'" in message
    shown = await arm.read("PUT", f"s/{CARD}/0", good)
    assert shown["properties"]["protectionPolicy"]["protectFromScaleIn"] is True
