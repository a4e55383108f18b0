"""Bodies of locks, tags, autoscale and maintenance: names in any case, and no unknown ones."""

from typing import Any

import pytest

from fairwarning.azure_api.body_types.tables import load_table
from tests.azure_api.arm_client import COMPUTE, GROUP
from tests.azure_api.scale_set_client import SETS, ScaleSetClient

DB = f"{COMPUTE}/virtualMachines/db"
WORKERS = f"{SETS}/workers"
LOCK = f"{WORKERS}/providers/Microsoft.Authorization/locks/k"
TAGS = f"{WORKERS}/providers/Microsoft.Resources/tags/default"
SETTING = f"{GROUP}/providers/Microsoft.Insights/autoscaleSettings/auto"
SPACE = "providers/Microsoft.Maintenance"
CONFIGURATION = f"{GROUP}/{SPACE}/maintenanceConfigurations/nightly"
ASSIGNMENT = f"{DB}/{SPACE}/configurationAssignments/a"
APPLIED = f"{DB}/{SPACE}/applyUpdates/default"
EVENTS = f"{DB}/{SPACE}/scheduledevents"
STATE = f"{WORKERS}/setOrchestrationServiceState"

PROFILE = {
    "name": "p",
    "capacity": {"minimum": "1", "maximum": "3", "default": "1"},
    "rules": [
        {
            "metricTrigger": {"metricName": "Percentage CPU", "dimensions": []},
            "scaleAction": {"direction": "Decrease", "type": "ChangeCount", "value": "1"},
        }
    ],
    "recurrence": {"frequency": "Week", "schedule": {"days": ["Monday"], "hours": [5]}},
}
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", LOCK): {
        "properties": {"level": "CanNotDelete", "owners": [{"applicationId": "me"}]},
    },
    ("PUT", TAGS): {"properties": {"tags": {"a": "b"}}},
    ("PATCH", TAGS): {"operation": "Merge", "properties": {"tags": {"c": "d"}}},
    ("PUT", SETTING): {
        "location": "local",
        "properties": {
            "targetResourceUri": WORKERS,
            "profiles": [PROFILE],
            "predictiveAutoscalePolicy": {"scaleMode": "Disabled"},
            "notifications": [
                {"operation": "Scale", "email": {"customEmails": ["a@b.c"]}, "webhooks": []}
            ],
        },
    },
    ("PATCH", SETTING): {"properties": {"enabled": True}},
    ("PUT", CONFIGURATION): {
        "location": "local",
        "properties": {
            "maintenanceScope": "Host",
            "maintenanceWindow": {"duration": "02:00", "startDateTime": "2026-02-01 22:00"},
            "installPatches": {
                "linuxParameters": {"packageNameMasksToExclude": ["x"]},
                "windowsParameters": {"excludeKbsRequiringReboot": True},
            },
        },
    },
    ("PUT", ASSIGNMENT): {
        "properties": {
            "maintenanceConfigurationId": CONFIGURATION,
            "filter": {"osTypes": ["Linux"], "tagSettings": {"tags": {"a": ["b"]}}},
        },
    },
    ("PUT", APPLIED): {"properties": {"status": "Pending"}},
    ("POST", STATE): {"serviceName": "AutomaticRepairs", "action": "Suspend"},
    ("POST", f"{SETTING}/trigger"): {"direction": "Increase"},
}
"""Bodies that are accepted in this order."""
CHOSEN = frozenset({"tags"})
"""Objects whose names the owner chooses."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all objects in a body whose names the type gives."""
    if isinstance(value, list):
        return [each for at, one in enumerate(value) for each in places(one, (*path, at))]
    if not isinstance(value, dict) or (path and path[-1] in CHOSEN):
        return []
    return [path, *(each for name, one in value.items() for each in places(one, (*path, name)))]


def with_member(value: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return {**value, "misspelt": None}
    first, *rest = path
    if isinstance(value, list):
        return [with_member(one, tuple(rest)) if at == first else one
                for at, one in enumerate(value)]  # fmt: skip
    return {**value, first: with_member(value[first], tuple(rest))}


def loud(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name.upper(): each if name in CHOSEN else loud(each) for name, each in value.items()
        }
    return [loud(each) for each in value] if isinstance(value, list) else value


async def make_all(arm: ScaleSetClient) -> None:
    for (method, path), body in BODIES.items():
        answer = await arm.answer(method, path, body)
        assert answer.status_code < 300, (path, answer.text)


async def test_an_unknown_member_is_refused_at_every_level(arm: ScaleSetClient) -> None:
    await make_all(arm)
    for (method, path), body in BODIES.items():
        for place in places(body):
            error = await arm.read(method, path, with_member(body, place), 400)
            assert "Could not find member 'misspelt' on object of type '" in error["message"], (
                method,
                path,
                place,
                error,
            )


async def test_names_count_in_any_case(arm: ScaleSetClient) -> None:
    await make_all(arm)
    kept = [path for method, path in BODIES if method == "PUT" and path != APPLIED]
    shown = {path: await arm.get(path) for path in kept}
    for (method, path), body in BODIES.items():
        answer = await arm.answer(method, path, loud(body))
        assert answer.status_code < 300, (path, answer.text)
    for path, before in shown.items():
        assert await arm.get(path) == before


async def test_tags_beside_the_properties_are_refused(arm: ScaleSetClient) -> None:
    """Otherwise a PUT that forgets `properties` would delete all tags."""
    await arm.put(TAGS, {"properties": {"tags": {"a": "b"}}}, 200)
    code, _ = await arm.refused("PUT", TAGS, {"tags": {"c": "d"}})
    assert code == "InvalidRequestContent"
    assert (await arm.get(TAGS))["properties"]["tags"] == {"a": "b"}


async def test_protection_of_an_instance_knows_its_members(arm: ScaleSetClient) -> None:
    vm = f"{WORKERS}/virtualMachines/0"
    policy = {"ProtectFromScaleIn": True}
    await arm.read("PUT", vm, {"Properties": {"ProtectionPolicy": policy}})
    shown = (await arm.get(vm))["properties"]["protectionPolicy"]
    assert shown["protectFromScaleIn"]
    bad = {"properties": {"protectionPolicy": {"protectFromScaleUp": True}}}
    _, message = await arm.refused("PUT", vm, bad)
    assert "Could not find member 'protectFromScaleUp'" in message


@pytest.mark.parametrize(
    "name", ["authorization", "compute", "insights", "maintenance", "network", "resources"]
)
def test_each_kind_of_a_table_is_known(name: str) -> None:
    table = load_table(name)
    plain = {"str", "bool", "int", "num", "any"}
    for type, members in table.items():
        for member in members.values():
            kind = member.kind.lstrip("[{")
            assert kind in plain or kind in table or kind.startswith("="), (type, member)
