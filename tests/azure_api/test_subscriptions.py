"""Subscriptions, providers, and the list of all that is in them."""

from typing import Any

import pytest

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION, Place, ScaleSet, VirtualMachine
from tests.azure_api.arm_client import COMPUTE, ArmClient, S, asking
from tests.operator_api.rig import ME

SETS = "Microsoft.Compute/virtualMachineScaleSets"
ADDRESS = f"{S}/resourceGroups/default/providers/Microsoft.Network/publicIPAddresses/ip"


async def found(arm: ArmClient, path: str = f"{S}/resources", **query: str) -> list[str]:
    """`type/name` of each, without the namespace."""
    rows = (await arm.get(path, **query))["value"]
    return [f"{row['type'].partition('/')[2]}/{row['name']}" for row in rows]


async def test_the_default_subscription_and_those_of_the_fleet_are_there() -> None:
    async with asking() as arm:
        place = Place(subscription="Other")
        await arm.rig.node.engine.declare([VirtualMachine(name="x", place=place)], by=ME)
        rows = (await arm.get("/subscriptions"))["value"]
        assert [row["subscriptionId"] for row in rows] == [DEFAULT_SUBSCRIPTION, "Other"]
        (one, _) = rows
        assert (one["id"], one["state"]) == (S, "Enabled")
        assert one["tenantId"]
        assert await arm.get(S) == one
        assert (await arm.get("/subscriptions/OTHER"))["subscriptionId"] == "Other"
        error = await arm.get("/subscriptions/none", 404)
        assert error["code"] == "SubscriptionNotFound"


async def test_locations_have_names() -> None:
    async with asking() as arm:
        rows = (await arm.get(f"{S}/locations"))["value"]
        assert {"local": "Local", "westeurope": "West Europe"}.items() <= {
            row["name"]: row["displayName"] for row in rows
        }.items()


async def test_providers_have_types_and_need_no_registration() -> None:
    async with asking() as arm:
        shown = await arm.get(f"{S}/providers/microsoft.compute")
        types = {each["resourceType"]: each for each in shown["resourceTypes"]}
        assert types["virtualMachineScaleSets"]["apiVersions"]
        assert shown["registrationState"] == "Registered"
        assert shown in (await arm.get(f"{S}/providers"))["value"]
        registered = await arm.read("POST", f"{S}/providers/Microsoft.Network/register")
        assert registered["registrationState"] == "Registered"


async def test_an_unknown_provider_is_refused() -> None:
    async with asking() as arm:
        error = await arm.get(f"{S}/providers/Microsoft.Sql", 404)
        assert error["code"] == "InvalidResourceNamespace"


async def test_all_that_the_fleet_has_and_all_that_is_kept_is_listed_once() -> None:
    async with asking() as arm:
        await arm.read("PUT", ADDRESS, {"location": "local", "tags": {"a": "b"}}, 201)
        expected = [
            "availabilitySets/web",
            "virtualMachines/db",
            *(f"virtualMachines/web-{n}" for n in range(4)),
            "virtualMachineScaleSets/workers",
            "publicIPAddresses/ip",
        ]
        assert sorted(await found(arm)) == sorted(expected)
        assert await found(arm, f"{S}/resourceGroups/DEFAULT/resources") == await found(arm)
        (row,) = (await arm.get(f"{S}/resources", filter="name eq 'ip'"))["value"]
        assert row == {
            "id": ADDRESS,
            "name": "ip",
            "type": "Microsoft.Network/publicIPAddresses",
            "location": "local",
            "tags": {"a": "b"},
        }


async def test_the_machines_of_a_flexible_set_are_listed_and_those_of_a_uniform_one_are_not() -> (
    None
):
    async with asking() as arm:
        flexible: Any = {"orchestration": "flexible", "suffixes": ("aaaaaaaa",)}
        await arm.rig.node.engine.declare([ScaleSet(name="f", capacity=1, **flexible)], by=ME)
        assert "virtualMachines/f_aaaaaaaa" in await found(arm)
        assert "virtualMachines/workers_0" not in await found(arm)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (f"resourceType eq '{SETS}'", ["virtualMachineScaleSets/workers"]),
        (f"resourcetype eq '{SETS.upper()}' and name eq 'other'", []),
        ("tagname eq 'A' and tagvalue eq 'b'", ["publicIPAddresses/ip"]),
        ("tagName eq 'a' and tagValue eq 'B'", []),
        ("tagName eq 'a'", ["publicIPAddresses/ip"]),
        ("resourceGroup eq 'Default' and name eq 'DB'", ["virtualMachines/db"]),
        ("location eq 'westeurope'", []),
        ("name eq 'it''s'", []),
    ],
)
async def test_filters(filter: str, expected: list[str]) -> None:
    async with asking() as arm:
        await arm.read("PUT", ADDRESS, {"location": "local", "tags": {"a": "b"}}, 201)
        assert await found(arm, filter=filter) == expected


@pytest.mark.parametrize(
    "filter",
    [
        "substringof('a', name)",
        "name eq 'a' or name eq 'b'",
        "name eq 'a' and name eq 'b'",
        "plan eq 'a'",
        "name eq 'a",
        "name eq 'a' garbage",
    ],
)
async def test_a_filter_that_is_not_understood_is_refused(filter: str) -> None:
    async with asking() as arm:
        error = await arm.get(f"{S}/resources", 400, filter=filter)
        assert error["code"] == "InvalidFilterInQueryString"


async def test_top_takes_the_first() -> None:
    async with asking() as arm:
        everything = await found(arm)
        assert await found(arm, top="2") == everything[:2]


async def test_what_is_gone_is_not_listed() -> None:
    async with asking() as arm:
        answer = await arm.answer("DELETE", f"{COMPUTE}/virtualMachines/db")
        assert answer.status_code == 202
        await arm.rig.clock.advance(3_600_000)
        assert "virtualMachines/db" not in await found(arm)


async def test_resources_of_a_missing_group_are_not_found() -> None:
    async with asking() as arm:
        error = await arm.get(f"{S}/resourceGroups/none/resources", 404)
        assert error["code"] == "ResourceGroupNotFound"
