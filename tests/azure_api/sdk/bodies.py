"""What callers of the SDK write, as models and as plain dictionaries."""

from typing import Any

from azure.mgmt.compute import models

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.azure_api.sdk.sdk_clients import GROUP, LOCATION, SdkClients

IMAGE = {"publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS", "version": "latest"}
NETWORKS = (
    f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network"
)
SUBNET = f"{NETWORKS}/virtualNetworks/net/subnets/default"


def terms(timeout: str) -> dict[str, Any]:
    profile = {"notBeforeTimeout": timeout, "enable": True}
    return {"scheduledEventsProfile": {"terminateNotificationProfile": profile}}


def patch(timeout: str) -> dict[str, Any]:
    return {"properties": {"virtualMachineProfile": terms(timeout)}}


def scale_set(capacity: int = 2, *, mode: str = "Uniform", **profile: Any) -> dict[str, Any]:
    """`profile` is what the test is about, within virtualMachineProfile."""
    return {
        "location": LOCATION,
        "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
        "properties": {
            "orchestrationMode": mode,
            "platformFaultDomainCount": 1,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "web", "adminUsername": "azureuser"},
                "storageProfile": {"imageReference": IMAGE},
                **profile,
            },
        },
    }


def in_network() -> dict[str, Any]:
    """Gives each instance a private address of the subnet."""
    addresses = {"name": "ip", "properties": {"subnet": {"id": SUBNET}}}
    interface = {"primary": True, "ipConfigurations": [addresses]}
    named = {"name": "nic", "properties": interface}
    return {"networkProfile": {"networkInterfaceConfigurations": [named]}}


def create_network(azure: SdkClients) -> None:
    body: Any = {
        "location": LOCATION,
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.7.0.0/16"]},
            "subnets": [{"name": "default", "properties": {"addressPrefix": "10.7.1.0/24"}}],
        },
    }
    poller = azure.resources.resources.begin_create_or_update_by_id(
        f"{NETWORKS}/virtualNetworks/net", body, api_version="2022-01-01"
    )
    azure.finish(poller)


def create_interface(azure: SdkClients, name: str) -> str:
    """Its id."""
    body: Any = {
        "location": LOCATION,
        "properties": {
            "ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": SUBNET}}}]
        },
    }
    id = f"{NETWORKS}/networkInterfaces/{name}"
    resources = azure.resources.resources
    azure.finish(resources.begin_create_or_update_by_id(id, body, api_version="2022-01-01"))
    return id


def create_scale_set(
    azure: SdkClients, name: str = "web", capacity: int = 2, **more: Any
) -> models.VirtualMachineScaleSet:
    body: Any = scale_set(capacity, **more)
    poller = azure.compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, name, body)
    return azure.finish(poller)


def vm_body(interface: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "location": LOCATION,
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "osProfile": {"computerName": "vm", "adminUsername": "azureuser"},
            "storageProfile": {"imageReference": IMAGE},
            "networkProfile": {"networkInterfaces": [{"id": interface}] if interface else []},
            **properties,
        },
    }


def create_vm(azure: SdkClients, name: str, **more: Any) -> models.VirtualMachine:
    body: Any = vm_body(**more)
    return azure.finish(azure.compute.virtual_machines.begin_create_or_update(GROUP, name, body))


def these(*ids: str) -> models.VirtualMachineScaleSetVMInstanceIDs:
    return models.VirtualMachineScaleSetVMInstanceIDs(instance_ids=list(ids))


def all_of(*ids: str) -> models.VirtualMachineScaleSetVMInstanceRequiredIDs:
    return models.VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=list(ids))
