"""Scale sets in ARM: made, shown, changed, listed."""

import asyncio
from typing import Any

import pytest

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.azure_api.arm_client import COMPUTE
from tests.azure_api.scale_set_client import (
    NETWORK_BODY,
    SETS,
    SUBNET,
    VNET,
    ScaleSetClient,
    body_of,
    connected,
    telling,
    told,
)


async def test_a_set_is_made_and_shown_as_its_owner_said(arm: ScaleSetClient) -> None:
    started = await arm.ask("PUT", "s", {**body_of(**told("PT10M", "true")), "zones": ["1"]}, 201)
    assert await arm.status(started) == "Succeeded"
    found = await arm.get("S")
    assert found["id"] == f"{SETS}/s"
    assert (found["name"], found["location"], found["zones"]) == ("s", "local", ["1"])
    assert found["type"] == "Microsoft.Compute/virtualMachineScaleSets"
    assert found["sku"] == {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 2}
    properties = found["properties"]
    assert properties["provisioningState"] == "Succeeded"
    assert properties["upgradePolicy"] == {"mode": "Manual"}
    assert properties["orchestrationMode"] == "Uniform"
    profile = properties["virtualMachineProfile"]
    assert profile["storageProfile"]["imageReference"] == {"offer": "Ubuntu", "sku": "22.04"}
    assert profile["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"notBeforeTimeout": "PT10M", "enable": True}
    }
    assert len(properties["uniqueId"]) == 36


async def test_the_operator_sees_the_same_set(arm: ScaleSetClient) -> None:
    await arm.make(**told("PT7M"))
    scope = await arm.rig.get("/scopes/scale-set%2Fs%2F0")
    assert [each["name"] for each in scope["instances"]] == ["s_0", "s_1"]
    assert (scope["terminateNotice"], scope["origin"]) == ("PT7M", "arm")


async def test_a_set_of_the_fleet_is_shown_and_changed_like_any_other(arm: ScaleSetClient) -> None:
    before = await arm.get("workers")
    profile = before["properties"]["virtualMachineProfile"]["scheduledEventsProfile"]
    assert profile["terminateNotificationProfile"]["notBeforeTimeout"] == "PT5M"
    assert before["sku"]["capacity"] == 3
    await arm.ask("PUT", "workers", telling("PT15M"), version="2019-03-01")
    scope = await arm.rig.get("/scopes/workers%2F0")
    assert scope["terminateNotice"] == "PT15M"
    assert await arm.capacity("workers") == 3


async def test_what_the_operator_changes_shows_in_arm(arm: ScaleSetClient) -> None:
    await arm.make()
    await arm.rig.post("/instances/s_1/delete", {}, 202)
    assert await arm.capacity() == 1


async def test_the_body_of_the_documentation_changes_the_model_alone(arm: ScaleSetClient) -> None:
    await arm.make()
    before = await arm.get("s")
    await arm.ask("PUT", "s", telling("PT5M"), version="2019-03-01")
    after = await arm.get("s")
    added = after["properties"]["virtualMachineProfile"].pop("scheduledEventsProfile")
    assert added == {"terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": True}}
    assert after.pop("etag") != before.pop("etag")
    assert after == before


async def test_an_old_api_version_does_not_know_the_profile(arm: ScaleSetClient) -> None:
    await arm.make(**told())
    code, message = await arm.refused("PUT", "s", telling(), version="2018-10-01")
    assert code == "BadRequest"
    assert message.startswith(
        "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'"
    )
    seen = await arm.get("s", version="2018-10-01")
    assert "scheduledEventsProfile" not in seen["properties"]["virtualMachineProfile"]
    await arm.ask("PUT", "s", seen, version="2018-10-01")
    assert (await arm.rig.get("/scopes/scale-set%2Fs%2F0"))["terminateNotice"] == "PT5M"


@pytest.mark.parametrize("notice", ["PT4M59S", "PT15M1S", "5", "P1D", "PT0S"])
async def test_a_timeout_outside_five_to_fifteen_minutes_is_refused(
    arm: ScaleSetClient, notice: str
) -> None:
    await arm.make()
    code, message = await arm.refused("PATCH", "s", telling(notice))
    assert code == "InvalidParameter"
    assert "notBeforeTimeout" in message
    assert (await arm.rig.get("/scopes/scale-set%2Fs%2F0"))["terminateNotice"] is None


async def test_sending_back_what_was_shown_changes_nothing(arm: ScaleSetClient) -> None:
    await arm.make(**told(), priority="Regular")
    shown = await arm.get("s")
    del shown["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]
    await arm.ask("PUT", "s", shown)
    assert all(await _on_latest_model(arm))
    profile = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    assert profile["storageProfile"]["imageReference"]["offer"] == "Ubuntu"


async def test_sending_back_a_set_of_the_fleet_changes_nothing(arm: ScaleSetClient) -> None:
    shown = await arm.get("workers")
    await arm.ask("PUT", "workers", shown)
    assert all(await _on_latest_model(arm, "workers"))


async def _on_latest_model(arm: ScaleSetClient, name: str = "s") -> list[bool]:
    list_reply = (await arm.get(f"{name}/virtualMachines"))["value"]
    return [each["properties"]["latestModelApplied"] for each in list_reply]


async def test_any_change_of_the_profile_makes_a_model(arm: ScaleSetClient) -> None:
    await arm.make()
    image = {"storageProfile": {"imageReference": {"sku": "24.04"}}}
    await arm.ask("PATCH", "s", {"properties": {"virtualMachineProfile": image}})
    assert await _on_latest_model(arm) == [False, False]
    await arm.post("s/manualupgrade", "1")
    assert await _on_latest_model(arm) == [False, True]


@pytest.mark.parametrize("mode", ["Automatic", "rolling"])
async def test_an_automatic_upgrade_brings_a_changed_model_to_all(
    arm: ScaleSetClient, mode: str
) -> None:
    await arm.make()
    body = telling()
    body["properties"]["upgradePolicy"] = {"mode": mode}
    await arm.ask("PATCH", "s", body)
    assert await _on_latest_model(arm) == [True, True]
    shown = (await arm.get("s"))["properties"]
    assert shown["upgradePolicy"]["mode"] == mode.capitalize()


async def test_scaling_says_only_location_and_sku(arm: ScaleSetClient) -> None:
    await arm.make(**told())
    sku = {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": "4"}
    await arm.ask("PUT", "s", {"location": "local", "sku": sku})
    assert await arm.ids() == ["0", "1", "2", "3"]
    assert await _on_latest_model(arm) == [True] * 4


async def test_who_comes_later_is_like_the_others(arm: ScaleSetClient) -> None:
    body = body_of(1, priority="Spot", evictionPolicy="Delete")
    await arm.ask("PUT", "s", {**body, "tags": {"team": "a"}}, 201)
    await arm.ask("PATCH", "s", {"sku": {"capacity": 2}})
    found = [await arm.rig.get(f"/instances/s_{number}") for number in range(2)]
    for each in found:
        assert (each["priority"], each["eviction"]) == ("Spot", "Delete")
        assert each["tags"] == {"team": "a"}


async def test_a_policy_part_left_empty_means_its_default(arm: ScaleSetClient) -> None:
    await arm.make()
    grid = {"eventGridAndResourceGraph": {"enable": "true"}}
    policy: dict[str, Any] = {
        "scheduledEventsAdditionalPublishingTargets": grid,
        "userInitiatedReboot": {"automaticallyApprove": True},
        "userInitiatedRedeploy": {"automaticallyApprove": True},
    }
    await arm.ask("PATCH", "s", {"properties": {"scheduledEventsPolicy": policy}})
    less: dict[str, Any] = {
        "scheduledEventsAdditionalPublishingTargets": {"eventGridAndResourceGraph": {}},
        "userInitiatedReboot": {},
    }
    await arm.ask("PUT", "s", {"properties": {"scheduledEventsPolicy": less}})
    shown = (await arm.get("s"))["properties"]["scheduledEventsPolicy"]
    assert shown == {
        "scheduledEventsAdditionalPublishingTargets": {
            "eventGridAndResourceGraph": {"enable": True}
        },
        "userInitiatedReboot": {"automaticallyApprove": False},
        "userInitiatedRedeploy": {"automaticallyApprove": True},
        "allInstancesDown": {"automaticallyApprove": True},
    }


async def test_an_approved_in_advance_restart_starts_at_once(arm: ScaleSetClient) -> None:
    await arm.make()
    policy = {"userInitiatedReboot": {"automaticallyApprove": True}}
    await arm.ask("PATCH", "s", {"properties": {"scheduledEventsPolicy": policy}})
    await arm.events("s_0")
    await arm.post("s/restart", "0")
    (event,) = await arm.events("s_0")
    assert event["EventStatus"] == "Started"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"location": None}, "LocationRequired"),
        ({"sku": {"capacity": -1}}, "InvalidParameter"),
        ({"sku": {"capacity": 1001}}, "InvalidParameter"),
        ({"sku": {"capacity": "many"}}, "InvalidParameter"),
        ({"sku": {"capacity": 1.5}}, "InvalidParameter"),
        ({"sku": {"capacity": True}}, "InvalidParameter"),
        ({"sku": []}, "InvalidRequestFormat"),
        ({"properties": "x"}, "InvalidRequestFormat"),
        ({"tags": {"a": 1}}, "InvalidRequestFormat"),
        ({"properties": {"orchestrationMode": "Both"}}, "InvalidParameter"),
        ({"properties": {"upgradePolicy": {"mode": "Never"}}}, "InvalidParameter"),
        ({"properties": {"virtualMachineProfile": {"priority": "High"}}}, "InvalidParameter"),
        ({"properties": {"platformFaultDomainCount": 6}}, "InvalidParameter"),
        ({"properties": {"platformFaultDomainCount": True}}, "InvalidParameter"),
        (
            {"properties": {"virtualMachineProfile": {"evictionPolicy": "Delete"}}},
            "InvalidParameter",
        ),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused(
    arm: ScaleSetClient, change: dict[str, Any], code: str
) -> None:
    assert (await arm.refused("PUT", "s", {**body_of(), **change}))[0] == code
    await arm.get("s", 404)


async def test_a_name_too_long_is_refused(arm: ScaleSetClient) -> None:
    assert (await arm.refused("PUT", "s" * 65, body_of()))[0] == "InvalidResourceName"
    assert (await arm.refused("PUT", "s-", body_of()))[0] == "InvalidResourceName"


async def test_a_body_is_needed(arm: ScaleSetClient) -> None:
    assert (await arm.refused("PUT", "s"))[0] == "InvalidRequestContent"


async def test_terminate_is_not_for_spot(arm: ScaleSetClient) -> None:
    body = body_of(priority="Spot", evictionPolicy="Delete", **told())
    assert (await arm.refused("PUT", "s", body))[0] == "InvalidParameter"
    await arm.make(capacity=0, priority="Spot")
    assert (await arm.refused("PATCH", "s", telling()))[0] == "InvalidParameter"


@pytest.mark.parametrize(
    "change",
    [
        {"orchestrationMode": "Flexible"},
        {"virtualMachineProfile": {"priority": "Spot"}},
        {"platformFaultDomainCount": 2},
    ],
)
async def test_what_a_set_is_made_with_stays(arm: ScaleSetClient, change: dict[str, Any]) -> None:
    await arm.make()
    code, _ = await arm.refused("PATCH", "s", {"properties": change}, 409)
    assert code == "PropertyChangeNotAllowed"


async def test_a_set_does_not_move(arm: ScaleSetClient) -> None:
    await arm.make()
    code, _ = await arm.refused("PUT", "s", {"location": "northeurope"}, 409)
    assert code == "InvalidResourceLocation"


async def test_patch_needs_a_set(arm: ScaleSetClient) -> None:
    code, message = await arm.refused("PATCH", "s", telling(), 404)
    assert code == "ResourceNotFound"
    assert "virtualMachineScaleSets/s" in message


async def test_sets_are_listed_whoever_made_them_and_however_empty(arm: ScaleSetClient) -> None:
    await arm.make("none", capacity=0)
    for place in (COMPUTE, f"/subscriptions/{DEFAULT_SUBSCRIPTION}/providers/Microsoft.Compute"):
        list_reply = await arm.get(f"{place}/virtualMachineScaleSets")
        assert [each["name"] for each in list_reply["value"]] == ["none", "workers"]
        assert "nextLink" not in list_reply


async def test_a_list_can_be_read_in_pages(arm: ScaleSetClient) -> None:
    await arm.make("none", capacity=0)
    first = await arm.get(f"{COMPUTE}/virtualMachineScaleSets", top="1")
    assert [each["name"] for each in first["value"]] == ["none"]
    second = (await arm.http.get(first["nextLink"])).json()
    assert [each["name"] for each in second["value"]] == ["workers"]


async def test_instances_get_addresses_of_their_subnet(arm: ScaleSetClient) -> None:
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    await arm.make(**connected())
    await arm.ask("PATCH", "s", {"sku": {"capacity": 3}})
    scope = await arm.rig.get("/scopes/scale-set%2Fs%2F0")
    addresses = [each["addresses"] for each in scope["instances"]]
    assert addresses == [["10.0.0.4"], ["10.0.0.5"], ["10.0.0.6"]]
    assert await arm.rig.node.store.records("arm-address", limit=9) == [], "the fleet has them"


async def test_a_subnet_that_is_full_or_missing_is_refused_before_anything_changes(
    arm: ScaleSetClient,
) -> None:
    assert (await arm.refused("PUT", "s", body_of(**connected())))[0] == "InvalidResourceReference"
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    assert (await arm.refused("PUT", "s", body_of(12, **connected())))[0] == "SubnetIsFull"
    await arm.get("s", 404)
    await arm.make(capacity=11, **connected())


async def test_the_primary_interface_gives_the_addresses_wherever_it_stands(
    arm: ScaleSetClient,
) -> None:
    back = {"name": "back", "properties": {"addressPrefix": "10.0.1.0/28"}}
    properties = NETWORK_BODY["properties"]
    assert isinstance(properties, dict)
    both = {**properties, "subnets": [*properties["subnets"], back]}
    await arm.ask("PUT", VNET, {**NETWORK_BODY, "properties": both}, 201)
    cards = [
        connected(subnet)["networkProfile"]["networkInterfaceConfigurations"][0]
        for subnet in (SUBNET, f"{VNET}/subnets/back")
    ]
    cards[0]["properties"]["primary"] = False
    await arm.make(capacity=1, networkProfile={"networkInterfaceConfigurations": cards})
    (found,) = (await arm.get("s/networkInterfaces"))["value"]
    (address,) = found["properties"]["ipConfigurations"]
    assert address["properties"]["privateIPAddress"].startswith("10.0.1.")
    assert address["properties"]["subnet"]["id"] == f"{VNET}/subnets/back"


async def test_a_set_grows_while_its_subnet_has_an_address_for_each_newcomer(
    arm: ScaleSetClient,
) -> None:
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    await arm.make(capacity=8, **connected())
    await arm.ask("PATCH", "s", {"sku": {"capacity": 11}})
    found = (await arm.get("s/networkInterfaces"))["value"]
    assert len(found) == 11
    assert (await arm.refused("PATCH", "s", {"sku": {"capacity": 12}}))[0] == "SubnetIsFull"
    assert await arm.capacity() == 11


async def test_a_flexible_set_names_its_instances(arm: ScaleSetClient) -> None:
    shown = await arm.make(mode="Flexible", capacity=3)
    assert shown["properties"]["orchestrationMode"] == "Flexible"
    ids = await arm.ids()
    assert len(set(ids)) == 3
    assert all(each.startswith("s_") and len(each) == 10 for each in ids)


async def test_a_set_may_have_several_placement_groups(arm: ScaleSetClient) -> None:
    await arm.make(capacity=150)
    assert await arm.capacity() == 150
    await arm.ask("PATCH", "s", {"sku": {"capacity": 210}})
    assert await arm.ids() == [str(number) for number in range(210)]


async def test_passwords_are_not_kept(arm: ScaleSetClient) -> None:
    body = body_of()
    body["properties"]["virtualMachineProfile"]["osProfile"]["adminPassword"] = "secret-word"
    await arm.ask("PUT", "s", body, 201)
    assert "secret-word" not in str(await arm.get("s"))
    records = await arm.rig.node.store.records("arm", limit=100)
    assert "secret-word" not in str(records)


async def test_two_who_make_the_same_set_make_one(arm: ScaleSetClient) -> None:
    async def put() -> int:
        path = f"{SETS}/s?api-version=2025-04-01"
        answer = await arm.http.put(path, json=body_of())
        return answer.status_code

    statuses = await asyncio.gather(*(put() for _ in range(5)))
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    assert await arm.ids() == ["0", "1"]


async def test_a_set_of_the_fleet_that_is_spot_is_shown_so(arm: ScaleSetClient) -> None:
    profile = {"priority": "sPOT", "evictionPolicy": "DELETE"}
    await arm.put("s", body_of(1, **profile))
    shown = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    assert (shown["priority"], shown["evictionPolicy"]) == ("Spot", "Delete")
