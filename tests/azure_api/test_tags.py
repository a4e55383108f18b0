"""Tags at a scope are the tags of the resource, and of nothing else."""

from typing import Any

import pytest

from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, ArmClient, S
from tests.azure_api.scale_set_client import NETWORK_BODY, SETS, ScaleSetClient

TAGS = "providers/Microsoft.Resources/tags/default"
VERSION = "2021-04-01"
VNET = f"{NETWORK}/virtualNetworks/net"
SCOPES = [
    S,
    GROUP,
    f"{SETS}/workers",
    f"{COMPUTE}/virtualMachines/db",
    f"{COMPUTE}/availabilitySets/web",
    VNET,
]


async def tags(arm: ArmClient, scope: str) -> dict[str, str]:
    found = await arm.get(f"{scope}/{TAGS}", version=VERSION)
    assert (found["id"], found["name"]) == (f"{scope}/{TAGS}", "default")
    assert found["type"] == "Microsoft.Resources/tags"
    return dict(found["properties"]["tags"])


def given(operation: str = "", **tags: str) -> dict[str, object]:
    return {"properties": {"tags": tags}} | ({"operation": operation} if operation else {})


@pytest.mark.parametrize("scope", SCOPES)
async def test_tags_are_replaced_merged_and_deleted(arm: ScaleSetClient, scope: str) -> None:
    await arm.put(VNET, NETWORK_BODY)
    assert await tags(arm, scope) == {}
    path = f"{scope}/{TAGS}"
    made = await arm.put(path, given(env="test", team="a"), 200, version=VERSION)
    assert made["properties"]["tags"] == {"env": "test", "team": "a"}
    assert await tags(arm, scope) == {"env": "test", "team": "a"}
    if scope != S:
        assert (await arm.get(scope))["tags"] == {"env": "test", "team": "a"}
    await arm.patch(path, given("Merge", ENV="live", x="1"), version=VERSION)
    assert await tags(arm, scope) == {"env": "live", "team": "a", "x": "1"}
    await arm.patch(path, given("Delete", x="2", TEAM="", env="live"), version=VERSION)
    assert await tags(arm, scope) == {"x": "1"}
    await arm.patch(path, given("Replace", y="1"), version=VERSION)
    assert await tags(arm, scope) == {"y": "1"}
    await arm.ask("DELETE", path, version=VERSION)
    assert await tags(arm, scope) == {}


async def test_tags_of_what_is_not_there_or_wrong_are_refused(arm: ScaleSetClient) -> None:
    await arm.refused("GET", f"{SETS}/none/{TAGS}", status=404)
    await arm.refused("PUT", f"{S}/resourceGroups/none/{TAGS}", given(a="b"), 404)
    await arm.refused("GET", f"{GROUP}/providers/Microsoft.Resources/tags/other")
    await arm.refused("PATCH", f"{GROUP}/{TAGS}", given("Add", a="b"))
    await arm.refused("PATCH", f"{GROUP}/{TAGS}", given(a="b"))
    bad: tuple[Any, ...] = ({"properties": {"tags": {"a": 1}}}, {"properties": []})
    for body in bad:
        await arm.refused("PUT", f"{GROUP}/{TAGS}", body)
    await arm.refused("PUT", f"{GROUP}/{TAGS}", {"properties": {"tags": {"a" * 513: ""}}})


async def test_the_names_of_a_subscription_are_counted(arm: ScaleSetClient) -> None:
    for scope, value in ((GROUP, "live"), (f"{SETS}/workers", "test"), (VNET, "live")):
        if scope == VNET:
            await arm.put(VNET, NETWORK_BODY)
        await arm.put(f"{scope}/{TAGS}", given(env=value), 200)
    (found,) = (await arm.get(f"{S}/tagNames"))["value"]
    assert (found["tagName"], found["count"]["value"]) == ("env", 3)
    values = {each["tagValue"]: each["count"]["value"] for each in found["values"]}
    assert values == {"live": 2, "test": 1}
