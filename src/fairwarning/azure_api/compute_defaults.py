"""Completes the bodies of VMs and scale sets as Azure does when it returns them. Pure.

Azure fills in what the owner left open, and leaves out empty objects. Readers of the answers rely
on both: some need `managedDisk.storageAccountType`, and some fail on `capacityReservation: {}`.
"""

from typing import Any

from fairwarning.azure_api.body_values import object_at, objects_at, text_at
from fairwarning.azure_api.catalogue import operating_system
from fairwarning.azure_api.request import Json

_KEPT_EMPTY = frozenset({"tags", "settings", "userAssignedIdentities"})
"""Members whose names the owner chooses. Empty objects in them mean something."""


def completed_vm(body: Json, name: str) -> Json:
    """Returns the body of a VM with Azure's defaults."""
    properties = object_at(body, "properties")
    size = text_at(properties, "hardwareProfile", "vmSize")
    storage = _storage(properties, size)
    disks = _data_disks(storage, size)
    added = {
        "storageProfile": {**_named_storage(properties, storage, name), "dataDisks": disks},
        "networkProfile": {"networkInterfaces": [], **object_at(properties, "networkProfile")},
    }
    if storage["osDisk"]["createOption"] != "Attach":
        added["osProfile"] = {"computerName": name, **_os_profile(properties)}
    return without_empty_objects({**body, "properties": {**properties, **added}})


def completed_set(body: Json) -> Json:
    """Returns the body of a scale set with Azure's defaults in its profile."""
    properties = object_at(body, "properties")
    profile = object_at(properties, "virtualMachineProfile")
    storage = _storage(profile, text_at(body, "sku", "name"))
    added = {"storageProfile": storage, "networkProfile": _network(profile)}
    if storage["osDisk"]["createOption"] != "Attach":
        added["osProfile"] = _os_profile(profile)
    properties = {**properties, "virtualMachineProfile": {**profile, **added}}
    return without_empty_objects({**body, "properties": properties})


def instance_storage(profile: Json, name: str) -> Json:
    """Returns the storageProfile of an instance of a scale set, from the set's complete profile."""
    storage = _named_storage(profile, object_at(profile, "storageProfile"), name)
    disks = [{"toBeDetached": False, **each} for each in objects_at(storage, "dataDisks")]
    return {**storage, "dataDisks": disks}


def _named_storage(profile: Json, storage: Json, name: str) -> Json:
    """Returns the storageProfile with the name and the system that a single VM's disk has."""
    usual = {"name": f"{name}_OsDisk_1", "osType": _system(profile)}
    return {**storage, "osDisk": {**usual, **object_at(storage, "osDisk")}}


def without_empty_objects(body: Json) -> Json:
    """Returns the body without members that are empty objects."""
    found = {
        name: value if name in _KEPT_EMPTY else _without_empty(value)
        for name, value in body.items()
    }
    return {n: v for n, v in found.items() if v != {} or n in _KEPT_EMPTY or n == "properties"}


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return without_empty_objects(value)
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _storage(profile: Json, size: str) -> Json:
    storage = object_at(profile, "storageProfile")
    disk = {"createOption": "FromImage", "caching": "ReadWrite", **object_at(storage, "osDisk")}
    return {**storage, "osDisk": _managed(disk, size)}


def _data_disks(storage: Json, size: str) -> list[Json]:
    return [
        _managed({"caching": "None", **disk}, size) for disk in objects_at(storage, "dataDisks")
    ]


def _managed(disk: Json, size: str) -> Json:
    """Returns the disk with the type of its storage. Disks in blobs (`vhd`) have none."""
    if disk.get("vhd") or disk.get("vhdContainers"):
        return disk
    managed = {"storageAccountType": storage_type(size), **object_at(disk, "managedDisk")}
    return {**disk, "managedDisk": managed}


def storage_type(size: str) -> str:
    """Returns the default type of a disk. Sizes with an `s`, such as D2s_v5, have premium disks."""
    family = size.lower().removeprefix("standard_").partition("_")[0]
    return "Premium_LRS" if "s" in family else "Standard_LRS"


def _system(profile: Json) -> str:
    if object_at(profile, "osProfile", "windowsConfiguration"):
        return "Windows"
    image = object_at(profile, "storageProfile", "imageReference")
    return operating_system(text_at(image, "publisher"), text_at(image, "offer"))


def _os_profile(profile: Json) -> Json:
    os_profile = object_at(profile, "osProfile")
    system = text_at(profile, "storageProfile", "osDisk", "osType") or _system(profile)
    if system == "Windows":
        name, usual = "windowsConfiguration", {
            "provisionVMAgent": True,
            "enableAutomaticUpdates": True,
        }  # fmt: skip
    else:
        name, usual = "linuxConfiguration", {"disablePasswordAuthentication": False}
    own = object_at(os_profile, name)
    return {"secrets": [], **os_profile, name: {**usual, **own}}


def _network(profile: Json) -> Json:
    network = object_at(profile, "networkProfile")
    cards = objects_at(network, "networkInterfaceConfigurations")
    return {**network, "networkInterfaceConfigurations": [_card(each) for each in cards]}


def _card(card: Json) -> Json:
    properties = object_at(card, "properties")
    addresses = [
        {**each, "properties": {"privateIPAddressVersion": "IPv4", **object_at(each, "properties")}}
        for each in objects_at(properties, "ipConfigurations")
    ]
    usual = {
        "enableAcceleratedNetworking": False,
        "enableIPForwarding": False,
        "dnsSettings": {"dnsServers": []},
    }
    return {**card, "properties": {**usual, **properties, "ipConfigurations": addresses}}
