"""Instances of scale sets, one by one."""

import re
from typing import Any

import pytest

from tests.azure_api.scale_set_client import (
    NETWORK_BODY,
    SETS,
    SUBNET,
    VNET,
    ScaleSetClient,
    body_of,
    connected,
)


async def test_a_uniform_instance_is_a_whole_resource(arm: ScaleSetClient) -> None:
    await arm.make(capacity=12)
    found = await arm.get("s/virtualMachines/11")
    assert found["id"] == f"{SETS}/s/virtualMachines/11"
    assert (found["name"], found["instanceId"], found["location"]) == ("s_11", "11", "local")
    assert found["type"] == "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
    properties = found["properties"]
    assert properties["latestModelApplied"] is True
    assert properties["provisioningState"] == "Succeeded"
    assert properties["osProfile"]["computerName"] == "vm00000B"
    assert properties["hardwareProfile"] == {"vmSize": "Standard_D2s_v5"}
    assert "instanceView" not in properties


async def own_metadata(arm: ScaleSetClient, name: str) -> Any:
    url = f"{arm.rig.node.metadata_urls[0]}/vm/{name}/metadata/instance/compute"
    answer = await arm.http.get(
        url, params={"api-version": "2021-02-01"}, headers={"Metadata": "true"}
    )
    return answer.json()


async def test_an_instance_is_the_one_that_its_own_metadata_tells_of(arm: ScaleSetClient) -> None:
    await arm.make()
    own = await own_metadata(arm, "s_1")
    found = await arm.get("s/virtualMachines/1")
    assert found["properties"]["vmId"] == own["vmId"]
    assert found["id"] == own["resourceId"]
    view = await arm.get("s/virtualMachines/1/instanceView")
    assert view["computerName"] == own["osProfile"]["computerName"] == "vm000001"


async def test_a_prefix_of_computer_names_changes_everywhere_and_outlives_a_declaration(
    arm: ScaleSetClient,
) -> None:
    await arm.make()
    profile = {"osProfile": {"computerNamePrefix": "web"}}
    body = {"properties": {"virtualMachineProfile": profile}, "sku": {"capacity": 101}}
    await arm.ask("PATCH", f"{SETS}/s", body)
    for name in ("s_0", "s_100"):
        number = name.removeprefix("s_")
        own = (await own_metadata(arm, name))["osProfile"]["computerName"]
        view = await arm.get(f"s/virtualMachines/{number}/instanceView")
        assert own == view["computerName"]
        assert own.startswith("web0000")
    await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 102}]})
    assert (await own_metadata(arm, "s_101"))["osProfile"]["computerName"].startswith("web")


async def test_a_flexible_instance_has_another_computer_name_than_its_own(
    arm: ScaleSetClient,
) -> None:
    await arm.make(mode="Flexible")
    (name, *_) = [each["name"] for each in (await arm.get("s/virtualMachines"))["value"]]
    view = await arm.get(f"s/virtualMachines/{name}/instanceView")
    own = await own_metadata(arm, name)
    assert view["computerName"] == own["osProfile"]["computerName"]
    assert own["name"] == name
    assert re.fullmatch("vm[0-9A-Z]{6}", view["computerName"])


async def test_a_prefix_that_no_name_has_room_for_is_refused(arm: ScaleSetClient) -> None:
    profile: Any = {"osProfile": {"computerNamePrefix": "x" * 59}}
    code, message = await arm.refused("PUT", f"{SETS}/long", body_of(**profile))
    assert code == "InvalidParameter"
    assert "at most 58 characters" in message


async def test_the_address_of_an_instance_is_its_interface_and_tells_who_asks(
    arm: ScaleSetClient,
) -> None:
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    await arm.make(**connected())
    cards = (await arm.get("s/networkInterfaces", version="2018-10-01"))["value"]
    assert [each["name"] for each in cards] == ["nic", "nic"]
    (own,) = (await arm.get("s/virtualMachines/1/networkInterfaces"))["value"]
    assert own == cards[1]
    assert own["properties"]["virtualMachine"]["id"] == f"{SETS}/s/virtualMachines/1"
    (config,) = own["properties"]["ipConfigurations"]
    assert config["properties"]["subnet"]["id"] == SUBNET
    found = await arm.rig.node.store.locate(config["properties"]["privateIPAddress"])
    assert found is not None
    assert found[1] == "s_1"


async def test_a_flexible_instance_shows_only_its_place(arm: ScaleSetClient) -> None:
    await arm.make(mode="Flexible", capacity=1)
    (list_reply,) = (await arm.get("s/virtualMachines"))["value"]
    assert "properties" not in list_reply
    assert list_reply["name"] == list_reply["instanceId"]
    assert await arm.get(f"s/virtualMachines/{list_reply['name'].upper()}") == list_reply
    view = await arm.get(f"s/virtualMachines/{list_reply['name']}/instanceView")
    assert view["computerName"].startswith("vm")


async def test_instances_are_listed_by_number_with_their_views_if_asked(
    arm: ScaleSetClient,
) -> None:
    await arm.make(capacity=11)
    list_reply = (await arm.get("s/virtualMachines", expand="instanceView"))["value"]
    assert [each["instanceId"] for each in list_reply] == [str(number) for number in range(11)]
    views = [each["properties"]["instanceView"] for each in list_reply]
    assert [each["platformUpdateDomain"] for each in views[:6]] == [0, 1, 2, 3, 4, 0]
    codes = [each["code"] for each in views[0]["statuses"]]
    assert codes == ["ProvisioningState/succeeded", "PowerState/running"]


async def test_instances_can_be_chosen(arm: ScaleSetClient) -> None:
    await arm.make(capacity=3)
    await arm.post("s/deallocate", "1")
    await arm.advance()

    async def chosen(text: str) -> list[str]:
        list_reply = await arm.get("s/virtualMachines", filter=text)
        return [each["instanceId"] for each in list_reply["value"]]

    status = "startswith(instanceView/statuses/code, '{}') eq true"
    assert await chosen(status.format("PowerState")) == ["0", "1", "2"]
    assert await chosen(status.format("PowerState/running")) == ["0", "2"]
    assert await chosen("properties/latestModelApplied eq false") == []
    both = f"properties/latestModelApplied eq true and {status.format('PowerState/deallocated')}"
    assert await chosen(both) == ["1"]


async def test_a_filter_that_means_nothing_is_refused(arm: ScaleSetClient) -> None:
    await arm.make()
    code, _ = await arm.refused("GET", "s/virtualMachines", filter="name eq 's_0'")
    assert code == "InvalidFilterInQueryString"


async def test_the_view_of_the_set_counts(arm: ScaleSetClient) -> None:
    await arm.make(capacity=3)
    await arm.post("s/poweroff", "1")
    await arm.advance()
    view = await arm.get("s/instanceView")
    assert view["virtualMachine"]["statusesSummary"] == [
        {"code": "PowerState/running", "count": 2},
        {"code": "PowerState/stopped", "count": 1},
        {"code": "ProvisioningState/succeeded", "count": 3},
    ]


async def test_what_is_not_there_is_not_found(arm: ScaleSetClient) -> None:
    await arm.make()
    for path in (
        "s/virtualMachines/7",
        "s/virtualMachines/s_0",
        "s/virtualMachines/7/instanceView",
    ):
        assert (await arm.get(path, 404))["code"] == "ResourceNotFound"
    for path in (
        "no/virtualMachines",
        "no/instanceView",
        "no/virtualMachines/0",
        "s/virtualMachines/*",
    ):
        assert (await arm.get(path, 404))["code"] == "ResourceNotFound"
    code, _ = await arm.refused("POST", "s/virtualMachines/7/restart", None, 404)
    assert code == "ResourceNotFound"


@pytest.mark.parametrize(("verb", "type"), [("restart", "Reboot"), ("redeploy", "Redeploy")])
async def test_one_instance_is_restarted_by_its_own_path(
    arm: ScaleSetClient, verb: str, type: str
) -> None:
    await arm.make()
    await arm.events("s_0")
    started = await arm.post(f"s/virtualMachines/1/{verb}")
    (event,) = await arm.events("s_0")
    assert (event["EventType"], event["Resources"]) == (type, ["s_1"])
    assert (await arm.get("s/virtualMachines/1"))["properties"]["provisioningState"] == "Updating"
    await arm.advance("20m")
    assert await arm.status(started) == "Succeeded"


async def test_a_star_in_a_path_is_everyone(arm: ScaleSetClient) -> None:
    await arm.make()
    url = f"{SETS}/s/virtualMachines/%2A/deallocate?api-version=2024-11-01"
    assert (await arm.http.post(url)).status_code == 202
    await arm.advance()
    view = await arm.get("s/instanceView")
    assert {"code": "PowerState/deallocated", "count": 2} in view["virtualMachine"][
        "statusesSummary"
    ]


async def test_maintenance_of_one_instance(arm: ScaleSetClient) -> None:
    await arm.events("workers_0")
    await arm.rig.schedule("workers_1")
    await arm.post("workers/virtualMachines/1/performMaintenance")
    (event,) = await arm.events("workers_0")
    assert event["EventStatus"] == "Started"


@pytest.mark.parametrize(("policy", "left"), [("Deallocate", 2), ("Delete", 1)])
async def test_an_eviction_is_a_preempt(arm: ScaleSetClient, policy: str, left: int) -> None:
    await arm.make(priority="Spot", evictionPolicy=policy)
    await arm.events("s_0")
    answer = await arm.ask("POST", "s/virtualMachines/1/simulateEviction", status=204)
    assert answer.content == b""
    (event,) = await arm.events("s_0")
    assert (event["EventType"], event["Resources"]) == ("Preempt", ["s_1"])
    await arm.advance("1m")
    assert len(await arm.ids()) == left
    shown = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    assert (shown["priority"], shown["evictionPolicy"]) == ("Spot", policy)


async def test_only_spot_is_evicted(arm: ScaleSetClient) -> None:
    await arm.make()
    code, message = await arm.refused("POST", "s/virtualMachines/1/simulateEviction", None, 409)
    assert code == "OperationNotAllowed"
    assert message == "Operation 'simulateEviction' is allowed only for Spot Virtual Machines"
