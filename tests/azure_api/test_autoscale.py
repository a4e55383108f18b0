"""Autoscale settings are kept, and scale a set in with Terminate when they are triggered."""

from typing import Any

import pytest

from fairwarning.azure_api.autoscale import next_capacity
from tests.azure_api.arm_client import GROUP, S
from tests.azure_api.scale_set_client import SETS, ScaleSetClient, told

SETTING = f"{GROUP}/providers/Microsoft.Insights/autoscaleSettings/auto"


def rule(direction: str, kind: str = "ChangeCount", value: object = "1") -> dict[str, Any]:
    action = {"direction": direction, "type": kind, "value": value, "cooldown": "PT5M"}
    return {"metricTrigger": {"metricName": "Percentage CPU"}, "scaleAction": action}


def profile(low: object = "1", high: object = "5", *rules: dict[str, Any]) -> dict[str, Any]:
    capacity = {"minimum": low, "maximum": high, "default": low}
    return {"name": "default", "capacity": capacity, "rules": list(rules)}


def setting(*profiles: dict[str, Any], target: str = f"{SETS}/s", **more: Any) -> dict[str, Any]:
    properties = {"targetResourceUri": target, "profiles": list(profiles), **more}
    return {"location": "West Europe", "properties": properties}


async def test_a_setting_is_kept_listed_changed_and_deleted(arm: ScaleSetClient) -> None:
    made = await arm.put(SETTING, setting(profile("1", "5", rule("Decrease"))))
    assert made["type"] == "Microsoft.Insights/autoscaleSettings"
    assert made["location"] == "westeurope"
    assert (made["properties"]["enabled"], made["properties"]["name"]) == (True, "auto")
    assert await arm.get(SETTING) == made
    for place in (S, GROUP):
        listed = await arm.get(f"{place}/providers/microsoft.insights/autoscalesettings")
        assert listed["value"] == [made]
    rows = (await arm.get(f"{GROUP}/resources"))["value"]
    assert "auto" in [each["name"] for each in rows]
    changed = await arm.patch(SETTING, {"tags": {"a": "b"}, "properties": {"enabled": False}})
    assert (changed["tags"], changed["properties"]["enabled"]) == ({"a": "b"}, False)
    replaced = await arm.put(SETTING, setting(profile()), 200)
    assert (replaced["tags"], replaced["properties"]["enabled"]) == ({}, True)
    await arm.ask("DELETE", SETTING)
    await arm.ask("DELETE", SETTING, status=204)
    await arm.get(SETTING, 404)


async def test_a_trigger_scales_in_with_terminate_and_stops_at_the_minimum(
    arm: ScaleSetClient,
) -> None:
    await arm.make("s", capacity=4, **told())
    await arm.events("s_0")
    await arm.put(SETTING, setting(profile("2", "5", rule("Decrease", value="3"))))
    started = await arm.ask("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 202)
    assert started.json() == {"previousCapacity": 4, "capacity": 2}
    events = await arm.events("s_0")
    assert sorted((each["EventType"], each["Resources"]) for each in events) == [
        ("Terminate", ["s_2"]),
        ("Terminate", ["s_3"]),
    ]
    assert await arm.status(started) == "InProgress"
    assert await arm.ids() == ["0", "1", "2", "3"]
    history = (await arm.rig.get("/history", scope="s"))["entries"]
    assert "autoscale setting auto" in [each["why"] for each in history]
    await arm.advance("6m")
    assert await arm.ids() == ["0", "1"]
    assert await arm.status(started) == "Succeeded"
    again = await arm.ask("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 202)
    assert again.json()["capacity"] == 2


async def test_a_trigger_scales_out_up_to_the_maximum(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=2)
    await arm.put(SETTING, setting(profile("1", "3", rule("Increase", value="5"))))
    await arm.ask("POST", f"{SETTING}/trigger", {"direction": "increase"}, 202)
    assert await arm.capacity() == 3


async def test_protection_and_locks_hold_for_autoscale_too(arm: ScaleSetClient) -> None:
    await arm.make("s", capacity=2)
    await arm.put(SETTING, setting(profile()))
    policy = {"properties": {"protectionPolicy": {"protectFromScaleIn": True}}}
    await arm.ask("PUT", "s/virtualMachines/1", policy)
    await arm.ask("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 202)
    await arm.advance()
    assert await arm.ids() == ["1"]
    lock = f"{SETS}/s/providers/Microsoft.Authorization/locks/k"
    await arm.put(lock, {"properties": {"level": "ReadOnly"}})
    code, _ = await arm.refused("POST", f"{SETTING}/trigger", {"direction": "Increase"}, 409)
    assert code == "ScopeLocked"


async def test_bad_settings_and_triggers_are_refused(arm: ScaleSetClient) -> None:
    await arm.refused("PUT", SETTING)
    for bad in (
        setting(),
        setting(profile("5", "1")),
        setting(profile("x", "1")),
        setting(profile("1", "2000")),
        setting(profile("1", "9" * 5000)),
        setting(profile("1", "2", rule("Sideways"))),
        setting(profile("1", "2", rule("Decrease", "Half"))),
        setting(profile(), target="nowhere"),
        setting(*[profile()] * 21),
        setting(profile("1", "2", *[rule("Increase")] * 11)),
    ):
        await arm.refused("PUT", SETTING, bad)
    await arm.put(SETTING, setting(profile()))
    await arm.refused("POST", f"{SETTING}/trigger", {"direction": "Down"})
    await arm.refused("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 404)
    await arm.put(SETTING, setting(profile(), enabled=False), 200)
    await arm.refused("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 409)
    await arm.put(SETTING, setting(profile(), target=f"{GROUP}/providers/A.B/c/d"), 200)
    await arm.refused("POST", f"{SETTING}/trigger", {"direction": "Decrease"}, 409)


@pytest.mark.parametrize(
    ("direction", "rules", "after"),
    [
        ("Decrease", (), 9),
        ("Increase", (), 11),
        ("Decrease", (rule("Increase"), rule("Decrease", value=4)), 6),
        ("Decrease", (rule("Decrease", "PercentChangeCount", "50"),), 5),
        ("Decrease", (rule("Decrease", "PercentChangeCount", "1"),), 9),
        ("Decrease", (rule("Decrease", "ExactCount", "3"),), 3),
        ("Decrease", (rule("Decrease", "ChangeCount", "30"),), 1),
        ("Increase", (rule("Increase", "ExactCount", "30"),), 20),
    ],
)
def test_a_rule_changes_the_capacity_within_the_limits(
    direction: str, rules: tuple[dict[str, Any], ...], after: int
) -> None:
    assert next_capacity(profile("1", "20", *rules), direction, 10) == after
