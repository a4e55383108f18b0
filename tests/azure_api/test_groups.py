"""Resource groups: made, tagged, listed, and deleted with all that is in them."""

from typing import Any

import pytest

from fairwarning.azure_api.resource_store import KIND as SHELF
from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from tests.azure_api.arm_client import COMPUTE, ArmClient, S, asking

GROUPS = f"{S}/resourcegroups"


async def names(arm: ArmClient, **query: str) -> list[str]:
    return [each["name"] for each in (await arm.get(GROUPS, **query))["value"]]


async def deletion(arm: ArmClient, name: str) -> str:
    """The URL of a deletion that has begun."""
    answer = await arm.answer("DELETE", f"{GROUPS}/{name}")
    assert answer.status_code == 202, answer.text
    return str(answer.headers["Azure-AsyncOperation"])


async def status(arm: ArmClient, url: str) -> str:
    return str((await arm.http.get(url)).json()["status"])


async def test_a_group_is_made_and_made_again() -> None:
    async with asking() as arm:
        made = await arm.put_group("Shop", "West Europe", tags={"team": "a"})
        assert made == {
            "id": f"{S}/resourceGroups/Shop",
            "name": "Shop",
            "type": "Microsoft.Resources/resourceGroups",
            "location": "westeurope",
            "tags": {"team": "a"},
            "properties": {"provisioningState": "Succeeded"},
        }
        again = await arm.read("PUT", f"{GROUPS}/SHOP", {"location": "westeurope"})
        assert (again["name"], again["tags"]) == ("Shop", {})
        assert await arm.get(f"{GROUPS}/shop") == again


async def test_tags_are_changed_by_themselves() -> None:
    async with asking() as arm:
        await arm.put_group("shop", managedBy="me")
        changed = await arm.read("PATCH", f"{GROUPS}/shop", {"tags": {"team": "b"}})
        assert (changed["tags"], changed["location"]) == ({"team": "b"}, "westeurope")
        assert changed["managedBy"] == "me"
        fleet = await arm.read("PATCH", f"{GROUPS}/default", {"tags": {"team": "b"}})
        assert fleet["location"] == "local"
        assert await names(arm, filter="tagName eq 'Team' and tagValue eq 'b'") == [
            "default",
            "shop",
        ]


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("has space", {"location": "westeurope"}, "InvalidResourceGroup"),
        ("ends.", {"location": "westeurope"}, "InvalidResourceGroup"),
        ("x" * 91, {"location": "westeurope"}, "InvalidResourceGroup"),
        ("grün", {"location": "westeurope"}, "InvalidResourceGroup"),
        ("shop", {}, "LocationRequired"),
        ("shop", None, "LocationRequired"),
        ("shop", {"location": ""}, "LocationRequired"),
        ("shop", {"location": "a/b"}, "LocationNotAvailableForResourceGroup"),
        ("shop", {"location": 5}, "LocationNotAvailableForResourceGroup"),
        ("shop", {"location": "westeurope", "tags": {"a": 1}}, "InvalidRequestFormat"),
        ("shop", {"location": "westeurope", "tags": "a"}, "InvalidRequestFormat"),
    ],
)
async def test_a_slip_is_refused_and_makes_nothing(name: str, body: Any, code: str) -> None:
    async with asking() as arm:
        assert (await arm.read("PUT", f"{GROUPS}/{name}", body, 400))["code"] == code
        assert await names(arm) == ["default"]


@pytest.mark.parametrize("name", ["a", "(a)", "x" * 90, "_", "A-b.c", "providers"])
async def test_names_that_azure_allows(name: str) -> None:
    async with asking() as arm:
        await arm.put_group(name)
        assert (await arm.get(f"{GROUPS}/{name}"))["name"] == name
        networks = f"{S}/resourceGroups/{name}/providers/Microsoft.Network/virtualNetworks"
        assert await arm.get(networks) == {"value": []}


async def test_a_group_does_not_move() -> None:
    async with asking() as arm:
        await arm.put_group("shop")
        error = await arm.read("PUT", f"{GROUPS}/shop", {"location": "eastus"}, 409)
        assert error["code"] == "InvalidResourceGroupLocation"
        assert error["message"] == (
            "Invalid resource group location 'eastus'. The Resource group already exists in "
            "location 'westeurope'."
        )
        await arm.read("PUT", f"{GROUPS}/default", {"location": "eastus"}, 409)
        await arm.read("PUT", f"{GROUPS}/default", {"location": "local"}, 200)


async def test_the_fleets_groups_are_there_too() -> None:
    async with asking() as arm:
        await arm.put_group("shop")
        assert await names(arm) == ["default", "shop"]
        assert (await arm.get(f"{GROUPS}/DEFAULT"))["id"] == f"{S}/resourceGroups/default"
        assert await names(arm, top="1") == ["default"]


async def test_head_says_whether_there_is_one() -> None:
    async with asking() as arm:
        assert (await arm.answer("HEAD", f"{GROUPS}/default")).status_code == 204
        missing = await arm.answer("HEAD", f"{GROUPS}/none")
        assert (missing.status_code, missing.content) == (404, b"")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_a_missing_group_is_not_found(method: str) -> None:
    async with asking() as arm:
        error = await arm.read(method, f"{GROUPS}/none", None, 404)
        assert error["code"] == "ResourceGroupNotFound"
        assert error["message"] == "Resource group 'none' could not be found."


@pytest.mark.parametrize(
    "filter",
    ["name eq 'x'", "tagName eq x", "tagName ne 'x'", "or", "tagName eq 'x' and tagName eq 'y'"],
)
async def test_a_filter_that_is_not_understood_is_refused(filter: str) -> None:
    async with asking() as arm:
        error = await arm.get(GROUPS, 400, filter=filter)
        assert error["code"] == "InvalidFilterInQueryString"


@pytest.mark.parametrize("top", ["0", "-1", "x", "1e3", "٣", "9" * 50])
async def test_a_top_that_is_no_number_is_refused(top: str) -> None:
    async with asking() as arm:
        assert (await arm.get(GROUPS, 400, top=top))["code"] == "InvalidTopInQueryString"


async def test_a_group_without_machines_is_gone_at_once_with_what_is_kept_in_it() -> None:
    async with asking() as arm:
        await arm.put_group("shop")
        network = f"{S}/resourceGroups/shop/providers/Microsoft.Network/virtualNetworks/net"
        body = {
            "location": "westeurope",
            "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
        }
        await arm.read("PUT", network, body, 201)
        url = await deletion(arm, "SHOP")
        everywhere = f"{S}/providers/Microsoft.Network/virtualNetworks"
        assert await arm.get(everywhere) == {"value": []}
        assert await status(arm, url) == "Succeeded"
        await arm.get(f"{GROUPS}/shop", 404)
        await arm.put_group("shop", "eastus")
        await arm.get(network, 404)


async def test_addresses_in_a_group_that_is_gone_are_free_again() -> None:
    async with asking() as arm:
        given = []
        for _ in range(2):
            await arm.put_group("shop")
            given.append(await private_address(arm, "shop"))
            await deletion(arm, "shop")
        assert given == ["10.0.0.4", "10.0.0.4"]


async def private_address(arm: ArmClient, group: str) -> str:
    """Of a new interface in a new network."""
    networks = f"{S}/resourceGroups/{group}/providers/Microsoft.Network"
    space = {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "sub", "properties": {"addressPrefix": "10.0.0.0/24"}}],
    }
    network = f"{networks}/virtualNetworks/net"
    await arm.read("PUT", network, {"location": "westeurope", "properties": space}, 201)
    subnet = {"subnet": {"id": f"{network}/subnets/sub"}}
    interface = {"ipConfigurations": [{"name": "ip", "properties": subnet}]}
    body = {"location": "westeurope", "properties": interface}
    made = await arm.read("PUT", f"{networks}/networkInterfaces/nic", body, 201)
    return str(made["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"])


async def test_a_group_lasts_as_long_as_its_machines_and_they_have_their_notice() -> None:
    async with asking() as arm:
        await arm.rig.activate("workers_0", "web-0", "db")
        address = f"{S}/resourceGroups/default/providers/Microsoft.Network/publicIPAddresses/ip"
        await arm.read("PUT", address, {"location": "local"}, 201)
        url = await deletion(arm, "default")
        events = (await arm.rig.document("workers_0"))["Events"]
        assert [each["EventType"] for each in events] == ["Terminate"] * 3
        assert await status(arm, url) == "InProgress"
        assert (await arm.get(f"{GROUPS}/default"))["properties"] == {
            "provisioningState": "Deleting"
        }
        again = await deletion(arm, "default")
        assert again.partition("?")[0] == url.partition("?")[0]
        await arm.rig.clock.advance(4 * MINUTE_MS)
        assert await status(arm, url) == "InProgress"
        await arm.rig.clock.advance(HOUR_MS)
        assert await status(arm, url) == "Succeeded"
        everywhere = f"{S}/providers/Microsoft.Network/publicIPAddresses"
        assert await arm.get(everywhere) == {"value": []}
        assert await names(arm) == []
        assert (await arm.rig.get("/fleet"))["scopes"] == []
        await arm.get(f"{GROUPS}/default", 404)


async def test_a_group_that_another_node_emptied_is_not_taken_for_one_that_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This node has not heard of the last deletions yet, and still shows the instances."""
    async with asking() as arm:
        views = arm.rig.node.engine.views
        known = list(views.ids())
        await deletion(arm, "default")
        await arm.rig.clock.advance(HOUR_MS)
        with monkeypatch.context() as patched:
            patched.setattr(views, "ids", lambda: known)
            shown = await arm.get(f"{GROUPS}/default")
            assert shown["properties"] == {"provisioningState": "Deleting"}
        await arm.get(f"{GROUPS}/default", 404)


async def test_nothing_is_made_in_a_group_that_is_being_deleted() -> None:
    async with asking() as arm:
        await arm.rig.activate("workers_0")
        await deletion(arm, "default")
        body = {"location": "local", "properties": {}}
        for path in (
            f"{GROUPS}/default",
            f"{COMPUTE}/availabilitySets/new",
            f"{S}/resourceGroups/default/providers/Microsoft.Network/publicIPAddresses/new",
        ):
            error = await arm.read("PUT", path, body, 409)
            assert error["code"] == "ResourceGroupBeingDeleted"
        for path in (f"{GROUPS}/default", f"{COMPUTE}/availabilitySets/web"):
            error = await arm.read("PATCH", path, {"tags": {"a": "b"}}, 409)
            assert error["code"] == "ResourceGroupBeingDeleted"


async def test_a_group_whose_deletion_was_stopped_is_one_like_any_other() -> None:
    async with asking() as arm:
        await arm.rig.activate("workers_0")
        url = await deletion(arm, "default")
        event = (await arm.rig.document("workers_0"))["Events"][0]
        await arm.rig.post(f"/events/{event['EventId']}/cancel")
        await arm.rig.clock.advance(HOUR_MS)
        assert await status(arm, url) == "Failed"
        shown = await arm.get(f"{GROUPS}/default")
        assert shown["properties"] == {"provisioningState": "Succeeded"}
        await arm.read("PUT", f"{GROUPS}/default", {"location": "local"})
        again = await deletion(arm, "default")
        await arm.rig.clock.advance(HOUR_MS)
        assert await status(arm, again) == "Succeeded"
        assert await names(arm) == []


async def test_a_group_that_got_new_machines_meanwhile_can_be_deleted_again() -> None:
    async with asking() as arm:
        await arm.rig.activate("workers_0")
        url = await deletion(arm, "default")
        await arm.rig.post("/scopes/workers/scale", {"capacity": 1}, status=202)
        await arm.rig.clock.advance(HOUR_MS)
        assert await status(arm, url) == "Succeeded"
        shown = await arm.get(f"{GROUPS}/default")
        assert shown["properties"] == {"provisioningState": "Succeeded"}
        again = await deletion(arm, "default")
        assert await status(arm, again) == "InProgress"
        await arm.rig.clock.advance(HOUR_MS)
        assert await names(arm) == []


async def test_templates_are_not_exported() -> None:
    async with asking() as arm:
        error = await arm.read("POST", f"{GROUPS}/default/exportTemplate", {}, 404)
        assert error["code"] == "InvalidAction"


async def test_the_roles_of_a_cloud_service_go_with_their_group() -> None:
    async with asking() as arm:
        service = {"name": "cloud", "roles": {"Web": 2}, "resource_group": "shop"}
        await arm.rig.post("/fleet", {"cloud_service": [service]})
        url = await deletion(arm, "shop")
        await arm.rig.clock.advance(HOUR_MS)
        assert await status(arm, url) == "Succeeded"
        assert await names(arm) == ["default"]
        assert (await arm.rig.get("/fleet", search="cloud"))["scopes"] == []


async def test_a_group_that_is_changed_while_it_is_deleted_goes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking() as arm:
        await arm.put_group("shop")
        store = arm.rig.node.store
        real, is_first = store.keep, iter((True,))

        async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
            if kind == SHELF and next(is_first, False):
                await arm.read("PATCH", f"{GROUPS}/shop", {"tags": {"a": "b"}})
            return await real(kind, key, body, **named)

        monkeypatch.setattr(store, "keep", keep)
        assert await status(arm, await deletion(arm, "shop")) == "Succeeded"
        await arm.get(f"{GROUPS}/shop", 404)


async def test_a_namesake_that_comes_while_a_group_is_cleared_away_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with asking() as arm:
        await arm.put_group("shop")
        store = arm.rig.node.store
        real, is_first = store.drop, iter((True,))

        async def drop(kind: str, key: str, **named: Any) -> Any:
            if kind == SHELF and next(is_first, False):
                await real(kind, key, by=named["by"])
                await arm.put_group("shop", "eastus")
                await private_address(arm, "shop")
            return await real(kind, key, **named)

        monkeypatch.setattr(store, "drop", drop)
        await deletion(arm, "shop")
        assert (await arm.get(f"{GROUPS}/shop"))["location"] == "eastus"
        networks = f"{S}/resourceGroups/shop/providers/Microsoft.Network"
        await arm.get(f"{networks}/networkInterfaces/nic")
