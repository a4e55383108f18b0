"""What Azure returns for what it was sent, as the examples of its specification show it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairwarning.azure_api.compute_defaults import storage_type, without_empty_objects
from tests.azure_api.arm_client import COMPUTE, ArmClient, running_client
from tests.azure_api.scale_set_client import NETWORK_BODY, SETS, SUBNET, VNET, body_of, told
from tests.azure_api.vm_client import NICS, VMS, vm_body

WINDOWS = {
    "publisher": "MicrosoftWindowsServer",
    "offer": "WindowsServer",
    "sku": "2016-Datacenter",
    "version": "latest",
}
UBUNTU = {"publisher": "Canonical", "offer": "UbuntuServer", "sku": "16.04-LTS"}
SSH = {"publicKeys": [{"path": "/home/me/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}]}


@pytest.fixture
async def arm() -> AsyncIterator[ArmClient]:
    async with running_client(ArmClient) as client:
        yield client


def lasting(shown: dict[str, Any]) -> dict[str, Any]:
    """Without what no example can know."""
    assert shown.pop("etag")
    properties = shown["properties"]
    for name in ("vmId", "uniqueId", "timeCreated"):
        properties.pop(name, None)
    return shown


async def test_a_scale_set_with_a_terminate_notice(arm: ArmClient) -> None:
    """The example VirtualMachineScaleSet_Create_WithTerminateScheduledEventEnabled."""
    await arm.put(VNET, NETWORK_BODY)
    address = {"name": "ip", "properties": {"subnet": {"id": SUBNET}}}
    card = {"primary": True, "enableIPForwarding": True, "ipConfigurations": [address]}
    sku = {"tier": "Standard", "capacity": 3, "name": "Standard_D1_v2"}
    disk = {
        "caching": "ReadWrite",
        "managedDisk": {"storageAccountType": "Standard_LRS"},
        "createOption": "FromImage",
    }
    account = {"computerNamePrefix": "s", "adminUsername": "me"}
    sent = {
        "sku": sku,
        "location": "local",
        "properties": {
            "overprovision": True,
            "virtualMachineProfile": {
                "storageProfile": {"imageReference": WINDOWS, "osDisk": disk},
                "osProfile": {**account, "adminPassword": "secret"},
                "networkProfile": {
                    "networkInterfaceConfigurations": [{"name": "nic", "properties": card}]
                },
                **told(),
            },
            "upgradePolicy": {"mode": "Manual"},
        },
    }
    await arm.put(f"{SETS}/s", sent)
    assert lasting(await arm.get(f"{SETS}/s")) == {
        "sku": sku,
        "name": "s",
        "location": "local",
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "id": f"{SETS}/s",
        "tags": {},
        "properties": {
            "singlePlacementGroup": True,
            "overprovision": True,
            "orchestrationMode": "Uniform",
            "platformFaultDomainCount": 5,
            "virtualMachineProfile": {
                "storageProfile": {"imageReference": WINDOWS, "osDisk": disk},
                "osProfile": {
                    **account,
                    "secrets": [],
                    "windowsConfiguration": {
                        "provisionVMAgent": True,
                        "enableAutomaticUpdates": True,
                    },
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {
                            "name": "nic",
                            "properties": {
                                "dnsSettings": {"dnsServers": []},
                                "primary": True,
                                "enableIPForwarding": True,
                                "ipConfigurations": [
                                    {
                                        "name": "ip",
                                        "properties": {
                                            "subnet": {"id": SUBNET},
                                            "privateIPAddressVersion": "IPv4",
                                        },
                                    }
                                ],
                                "enableAcceleratedNetworking": False,
                            },
                        }
                    ]
                },
                **told(),
            },
            "upgradePolicy": {"mode": "Manual"},
            "provisioningState": "Succeeded",
        },
    }


async def test_a_vm_with_a_key(arm: ArmClient) -> None:
    """The example VirtualMachine_Create_WithSshAuthentication."""
    await arm.put(VNET, NETWORK_BODY)
    configuration = {"name": "ip", "properties": {"subnet": {"id": SUBNET}}}
    nic = {"location": "local", "properties": {"ipConfigurations": [configuration]}}
    await arm.put(f"{NICS}/nic", nic)
    disk = {
        "caching": "ReadWrite",
        "managedDisk": {"storageAccountType": "Standard_LRS"},
        "name": "myVMosdisk",
        "createOption": "FromImage",
    }
    account = {
        "adminUsername": "me",
        "computerName": "v",
        "linuxConfiguration": {"ssh": SSH, "disablePasswordAuthentication": True},
    }
    network = {"networkInterfaces": [{"id": f"{NICS}/nic", "properties": {"primary": True}}]}
    size = {"vmSize": "Standard_D1_v2"}
    properties = {
        "hardwareProfile": size,
        "storageProfile": {"imageReference": UBUNTU, "osDisk": disk},
        "osProfile": account,
        "networkProfile": network,
    }
    await arm.put(f"{VMS}/v", {"location": "local", "properties": properties})
    assert lasting(await arm.get(f"{VMS}/v")) == {
        "id": f"{VMS}/v",
        "type": "Microsoft.Compute/virtualMachines",
        "name": "v",
        "location": "local",
        "tags": {},
        "properties": {
            "osProfile": {**account, "secrets": []},
            "networkProfile": network,
            "storageProfile": {
                "imageReference": UBUNTU,
                "osDisk": {**disk, "osType": "Linux"},
                "dataDisks": [],
            },
            "hardwareProfile": size,
            "provisioningState": "Succeeded",
        },
    }


async def test_an_availability_set(arm: ArmClient) -> None:
    """The example AvailabilitySet_Create_WithScheduledEventProfile."""
    policy = {
        "scheduledEventsAdditionalPublishingTargets": {
            "eventGridAndResourceGraph": {"enable": True}
        },
        "userInitiatedRedeploy": {"automaticallyApprove": True},
        "userInitiatedReboot": {"automaticallyApprove": True},
    }
    domains = {"platformFaultDomainCount": 2, "platformUpdateDomainCount": 20}
    path = f"{COMPUTE}/availabilitySets/a"
    body = {"location": "local", "properties": {**domains, "scheduledEventsPolicy": policy}}
    await arm.put(path, body, 200)
    assert await arm.get(path) == {
        "sku": {"name": "Classic"},
        "name": "a",
        "properties": {"scheduledEventsPolicy": policy, **domains, "virtualMachines": []},
        "location": "local",
        "type": "Microsoft.Compute/availabilitySets",
        "id": path,
        "tags": {},
    }


async def test_an_instance_of_a_scale_set(arm: ArmClient) -> None:
    """The example VirtualMachineScaleSetVM_Get_WithUserData."""
    await arm.put(VNET, NETWORK_BODY)
    address = {"name": "ip", "properties": {"subnet": {"id": SUBNET}}}
    card = {"name": "nic", "properties": {"primary": True, "ipConfigurations": [address]}}
    disk = {"lun": 1, "createOption": "Empty", "diskSizeGB": 128}
    profile: dict[str, Any] = {
        "storageProfile": {"imageReference": WINDOWS, "dataDisks": [disk]},
        "osProfile": {"computerNamePrefix": "vm", "adminUsername": "me"},
        "networkProfile": {"networkInterfaceConfigurations": [card]},
    }
    await arm.put(f"{SETS}/s", body_of(1, **profile))
    path = f"{SETS}/s/virtualMachines/0"
    shown = (await arm.get(path))["properties"]
    assert shown["osProfile"] == {
        "computerName": "vm000000",
        "adminUsername": "me",
        "windowsConfiguration": {"provisionVMAgent": True, "enableAutomaticUpdates": True},
        "secrets": [],
        "allowExtensionOperations": True,
        "requireGuestProvisionSignal": True,
    }
    storage = shown["storageProfile"]
    assert (storage["osDisk"]["osType"], storage["osDisk"]["name"]) == ("Windows", "s_0_OsDisk_1")
    assert storage["dataDisks"] == [{**disk, "toBeDetached": False}]
    nic = f"{path}/networkInterfaces/nic"
    assert shown["networkProfile"] == {"networkInterfaces": [{"id": nic}]}
    (listed,) = (await arm.get(f"{path}/networkInterfaces"))["value"]
    assert (listed["id"], listed["name"]) == (nic, "nic")
    properties = listed["properties"]
    assert properties["virtualMachine"] == {"id": path}
    assert properties["dnsSettings"] == {"dnsServers": [], "appliedDnsServers": []}
    assert properties["enableIPForwarding"] is False
    assert properties["macAddress"]
    assert properties["ipConfigurations"][0]["properties"]["privateIPAddressVersion"] == "IPv4"


async def test_a_vm_of_a_flexible_set_is_managed_by_it(arm: ArmClient) -> None:
    """As in the example VirtualMachine_Get."""
    await arm.put(f"{SETS}/f", body_of(1, mode="Flexible"))
    rows = (await arm.get(VMS))["value"]
    assert {row["name"]: row.get("managedBy") for row in rows if row["name"] == "db"} == {
        "db": None
    }
    (own,) = [row for row in rows if row["name"].startswith("f_")]
    assert own["managedBy"] == f"{SETS}/f"


async def test_a_vm_that_says_only_its_size(arm: ArmClient) -> None:
    await arm.put(f"{VMS}/v", vm_body(capacityReservation={}, billingProfile={}))
    properties = (await arm.get(f"{VMS}/v"))["properties"]
    assert "capacityReservation" not in properties
    assert "billingProfile" not in properties
    assert properties["storageProfile"] == {
        "osDisk": {
            "name": "v_OsDisk_1",
            "osType": "Linux",
            "createOption": "FromImage",
            "caching": "ReadWrite",
            "managedDisk": {"storageAccountType": "Premium_LRS"},
        },
        "dataDisks": [],
    }
    assert properties["networkProfile"] == {"networkInterfaces": []}
    assert properties["osProfile"] == {
        "computerName": "v",
        "secrets": [],
        "linuxConfiguration": {"disablePasswordAuthentication": False},
    }


async def test_what_the_fleet_declared_is_complete_too(arm: ArmClient) -> None:
    vm = (await arm.get(f"{VMS}/db"))["properties"]
    assert vm["hardwareProfile"]["vmSize"]
    found = (await arm.get(f"{SETS}/workers"))["properties"]["virtualMachineProfile"]
    for profile in (vm, found):
        assert profile["storageProfile"]["osDisk"]["managedDisk"]["storageAccountType"]


@pytest.mark.parametrize("path", [f"{SETS}/s", f"{VMS}/v"])
async def test_a_notice_that_is_off_is_not_shown(arm: ArmClient, path: str) -> None:
    is_set = path.startswith(SETS)
    await arm.put(path, body_of(**told()) if is_set else vm_body(**told()))

    async def profile() -> Any:
        found = (await arm.get(path, version="2025-04-01"))["properties"]
        found = found["virtualMachineProfile"] if is_set else found
        return found.get("scheduledEventsProfile")

    assert await profile() == told()["scheduledEventsProfile"]
    off = told(enable=False)
    await arm.patch(path, {"properties": {"virtualMachineProfile": off} if is_set else off})
    assert await profile() is None


async def test_sending_back_a_completed_set_makes_no_model(arm: ArmClient) -> None:
    await arm.put(f"{SETS}/s", body_of(**told()))
    shown = await arm.get(f"{SETS}/s")
    await arm.ask("PUT", f"{SETS}/s", shown)
    again = await arm.get(f"{SETS}/s")
    assert again["properties"] == shown["properties"]
    rows = (await arm.get(f"{SETS}/s/virtualMachines"))["value"]
    assert all(row["properties"]["latestModelApplied"] for row in rows)


async def test_a_set_of_several_placement_groups_says_so(arm: ArmClient) -> None:
    await arm.put(f"{SETS}/s", body_of(150))
    assert (await arm.get(f"{SETS}/s"))["properties"]["singlePlacementGroup"] is False
    await arm.put(f"{SETS}/f", body_of(1, mode="Flexible"))
    assert (await arm.get(f"{SETS}/f"))["properties"]["singlePlacementGroup"] is False


@pytest.mark.parametrize(
    ("size", "type"),
    [
        ("Standard_D1_v2", "Standard_LRS"),
        ("Standard_DS1_v2", "Premium_LRS"),
        ("Standard_D2s_v5", "Premium_LRS"),
        ("Standard_A2_v2", "Standard_LRS"),
        ("Standard_B1s", "Premium_LRS"),
        ("", "Standard_LRS"),
    ],
)
def test_the_type_of_a_disk_follows_the_size(size: str, type: str) -> None:
    assert storage_type(size) == type


def test_empty_objects_are_left_out_at_every_level() -> None:
    body = {
        "tags": {},
        "properties": {"a": {"b": {"c": {}}}, "list": [{"d": {}, "e": 1}], "none": []},
        "identity": {"userAssignedIdentities": {"/x": {}}},
    }
    assert without_empty_objects(body) == {
        "tags": {},
        "properties": {"list": [{"e": 1}], "none": []},
        "identity": {"userAssignedIdentities": {"/x": {}}},
    }
