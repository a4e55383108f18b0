"""Names of members: any case counts, and what the type does not have is refused."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.azure_api.arm_client import COMPUTE, NETWORK, S, running_client
from tests.azure_api.scale_set_client import (
    NETWORK_BODY,
    VNET,
    ScaleSetClient,
    body_of,
    connected,
    told,
)
from tests.azure_api.vm_client import VMS, vm_body

WHERE_KIND = [
    ({"properties": []}, "properties"),
    ({"sku": "large"}, "sku"),
    ({"properties": {"overprovision": "maybe"}}, "properties.overprovision"),
    ({"properties": {"virtualMachineProfile": 1}}, "properties.virtualMachineProfile"),
    ({"properties": {"orchestrationMode": {}}}, "properties.orchestrationMode"),
    ({"zones": "1"}, "zones"),
    ({"tags": []}, "tags"),
]


@pytest.fixture
async def arm() -> AsyncIterator[ScaleSetClient]:
    async with running_client(ScaleSetClient) as client:
        yield client


async def _notice(arm: ScaleSetClient) -> Any:
    return (await arm.rig.get("/scopes/scale-set%2Fs%2F0"))["terminateNotice"]


async def test_a_notice_in_another_case_is_a_notice(arm: ScaleSetClient) -> None:
    notice = {"NotBeforeTimeout": "PT7M", "Enable": True}
    profile = {"ScheduledEventsProfile": {"TerminateNotificationProfile": notice}}
    await arm.make()
    await arm.ask("PATCH", "s", {"Properties": {"VirtualMachineProfile": profile}})
    assert await _notice(arm) == "PT7M"
    shown = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    assert shown["scheduledEventsProfile"] == {
        "terminateNotificationProfile": {"notBeforeTimeout": "PT7M", "enable": True}
    }


async def test_a_body_all_in_capitals_makes_the_same_set(arm: ScaleSetClient) -> None:
    def loud(value: Any) -> Any:
        if isinstance(value, dict):
            return {name.upper(): loud(each) for name, each in value.items()}
        return [loud(each) for each in value] if isinstance(value, list) else value

    await arm.ask("PUT", VNET, loud(NETWORK_BODY), 201)
    body = {**body_of(**told(), **connected()), "zones": ["1"]}
    await arm.ask("PUT", "s", loud(body), 201)
    quiet = await arm.ask("PUT", "t", body, 201)
    one, other = await arm.get("s"), quiet.json()
    assert (
        one["properties"]["virtualMachineProfile"] == (other["properties"]["virtualMachineProfile"])
    )
    assert one["zones"] == ["1"]
    assert (await arm.get("s/virtualMachines/0"))["properties"]["latestModelApplied"]


@pytest.mark.parametrize(
    ("where", "owner"),
    [
        (("properties",), "Properties"),
        (("properties", "virtualMachineProfile"), "VirtualMachineProfile"),
        (
            ("properties", "virtualMachineProfile", "scheduledEventsProfile"),
            "ScheduledEventsProfile",
        ),
        (
            (
                "properties",
                "virtualMachineProfile",
                "scheduledEventsProfile",
                "terminateNotificationProfile",
            ),
            "TerminateNotificationProfile",
        ),
        (("properties", "scheduledEventsPolicy", "userInitiatedReboot"), "UserInitiatedReboot"),
        (("properties", "virtualMachineProfile", "storageProfile", "osDisk"), "OSDisk"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_an_unknown_member_is_refused_at_every_level(
    arm: ScaleSetClient, method: str, where: tuple[str, ...], owner: str
) -> None:
    await arm.make()
    body: dict[str, Any] = {"misspelt": None}
    for name in reversed(where):
        body = {name: body}
    code, message = await arm.refused(method, "s", body)
    path = ".".join((*where, "misspelt"))
    assert code == "BadRequest"
    assert message == (
        f"Could not find member 'misspelt' on object of type '{owner}'. Path '{path}'."
    )
    assert await _notice(arm) is None


async def test_an_unknown_member_in_a_list_is_refused(arm: ScaleSetClient) -> None:
    disks = {"storageProfile": {"dataDisks": [{"lun": 0}, {"lun": 1, "toBeDetach": True}]}}
    error = await arm.read("PUT", f"{VMS}/v", vm_body(**disks), 400)
    path = "properties.storageProfile.dataDisks[1].toBeDetach"
    assert error == {
        "code": "BadRequest",
        "message": f"Could not find member 'toBeDetach' on object of type 'DataDisk'. "
        f"Path '{path}'.",
        "target": path,
    }
    await arm.get(f"{VMS}/v", 404)


async def test_an_unknown_member_of_the_resource_is_refused_by_arm(arm: ScaleSetClient) -> None:
    code, message = await arm.refused("PUT", "s", {**body_of(), "propertys": {}})
    assert code == "InvalidRequestContent"
    assert message == (
        "The request content was invalid and could not be deserialized: 'Could not find member "
        "'propertys' on object of type 'ResourceDefinition'. Path 'propertys'.'."
    )
    body = {"location": "westeurope", "tag": {}}
    code, message = await arm.refused("PUT", f"{S}/resourcegroups/g", body)
    assert code == "InvalidRequestContent"
    assert "'tag' on object of type 'ResourceGroupDefinition'" in message


async def test_a_misspelt_list_of_instances_does_not_mean_all(arm: ScaleSetClient) -> None:
    await arm.make()
    code, message = await arm.refused("POST", "s/restart", {"instanceId": ["0"]})
    assert code == "BadRequest"
    assert "'instanceId'" in message
    await arm.ask("POST", "s/delete", {"InstanceIDs": ["0"]}, 202)
    await arm.advance()
    assert await arm.ids() == ["1"]


async def test_the_network_refuses_in_its_own_words(arm: ScaleSetClient) -> None:
    body = {
        "location": "local",
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "a", "properties": {"prefix": "10.0.0.0/24"}}],
        },
    }
    error = await arm.read("PUT", VNET, body, 400)
    assert error["code"] == "InvalidRequestFormat"
    assert error["message"] == "Cannot parse the request."
    (detail,) = error["details"]
    assert detail["code"] == "InvalidJson"
    assert detail["message"] == (
        "Could not find member 'prefix' on object of type 'SubnetPropertiesFormat'. "
        "Path 'properties.subnets[0].properties.prefix'."
    )
    await arm.ask("PUT", VNET, NETWORK_BODY, 201)
    part = {"properties": {"addressPrefix": "10.0.1.0/24", "natGate": {}}}
    error = await arm.read("PUT", f"{VNET}/subnets/more", part, 400)
    assert error["code"] == "InvalidRequestFormat"


async def test_one_member_in_two_spellings_is_refused(arm: ScaleSetClient) -> None:
    await arm.make()
    notice = {"enable": True, "Enable": False}
    profile = {"scheduledEventsProfile": {"terminateNotificationProfile": notice}}
    body = {"properties": {"virtualMachineProfile": profile}}
    code, message = await arm.refused("PATCH", "s", body)
    assert code == "BadRequest"
    assert "'enable' is there twice" in message


@pytest.mark.parametrize("name", ["kind", "managedBy", "scale", "etag", "systemData", "placement"])
async def test_what_arm_knows_on_every_resource_is_taken(arm: ScaleSetClient, name: str) -> None:
    body = {"location": "local", name: None, "properties": {"platformUpdateDomainCount": 5}}
    await arm.ask("PUT", f"{COMPUTE}/availabilitySets/a", body)
    assert name not in await arm.get(f"{COMPUTE}/availabilitySets/a")


async def test_names_that_the_owner_chooses_stay(arm: ScaleSetClient) -> None:
    settings = {"AnyThing": {"Of": "mine"}}
    extension = {"name": "e", "properties": {"publisher": "p", "type": "t", "settings": settings}}
    body = body_of(extensionProfile={"extensions": [extension]})
    await arm.ask("PUT", "s", {**body, "tags": {"Enable": "true"}}, 201)
    shown = await arm.get("s")
    assert shown["tags"] == {"Enable": "true"}
    (kept,) = shown["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"]
    assert kept["properties"]["settings"] == settings


async def test_words_get_their_spelling(arm: ScaleSetClient) -> None:
    disk = {"createOption": "fromimage", "caching": "READONLY", "diskSizeGB": "64"}
    await arm.make(storageProfile={"osDisk": disk})
    profile = (await arm.get("s"))["properties"]["virtualMachineProfile"]
    shown = profile["storageProfile"]["osDisk"]
    assert (shown["createOption"], shown["caching"]) == ("FromImage", "ReadOnly")
    assert shown["diskSizeGB"] == 64


async def test_a_misspelt_member_in_a_template_fails_the_deployment(arm: ScaleSetClient) -> None:
    body = body_of()
    body["properties"]["virtualMachineProfile"]["scheduledEventProfile"] = {}
    resource = {
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "apiVersion": "2024-11-01",
        "name": "s",
        **body,
    }
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [resource],
    }
    place = f"{NETWORK}".replace("Microsoft.Network", "Microsoft.Resources/deployments/d")
    answer = await arm.ask(
        "PUT", place, {"properties": {"mode": "Incremental", "template": template}}, 201
    )
    error = (await arm.progress(answer))["error"]
    assert "scheduledEventProfile" in str(error["details"])
    await arm.get("s", 404)


@pytest.mark.parametrize(("said", "where"), WHERE_KIND)
async def test_a_wrong_kind_is_refused_and_named(
    arm: ScaleSetClient, said: dict[str, Any], where: str
) -> None:
    code, message = await arm.refused("PUT", "s", {**body_of(), **said})
    assert code == "InvalidRequestFormat"
    assert f"'{where}'" in message


async def test_what_is_derived_cannot_be_said(arm: ScaleSetClient) -> None:
    shown = await arm.make()
    said = {"provisioningState": "Failed", "uniqueId": "1", "timeCreated": "now"}
    await arm.ask("PATCH", "s", {"id": "/x", "name": "n", "type": "t", "properties": said})
    again = await arm.get("s")
    for name in ("uniqueId", "timeCreated"):
        assert again["properties"][name] == shown["properties"][name]
    assert (again["id"], again["name"]) == (shown["id"], "s")
    assert again["properties"]["provisioningState"] == "Succeeded"
