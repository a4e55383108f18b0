"""Merges the body of a PUT or PATCH into the stored body of a resource. Pure.

Objects are merged member by member, and lists are replaced. A null removes a notice profile, and is
ignored elsewhere. Booleans that are written as text are converted, because old templates have them.
Derived properties are removed, because clients send back what they were shown.
"""

from typing import Any

from fairwarning.azure_api.body_values import wrong_kind
from fairwarning.azure_api.request import Json

_READ_ONLY = frozenset({"id", "name", "type", "etag", "systemData", "resources"})
_READ_ONLY_PROPERTIES = frozenset({
    "provisioningState", "uniqueId", "timeCreated", "instanceView", "vmId", "statuses",
    "latestModelApplied", "modelDefinitionApplied", "virtualMachines",
})  # fmt: skip
_SECRETS = frozenset({"adminpassword", "customdata", "userdata", "protectedsettings"})
"""Members that are never stored, because Azure never shows them. The names are in lower case."""
_NULL_MEANS_OFF = frozenset(
    {"scheduledEventsProfile", "terminateNotificationProfile", "osImageNotificationProfile"}
)
_REPLACED = frozenset({"tags"})
_AS_WRITTEN = frozenset({"tags", "settings", "metadata", "extendedProperties"})
"""Members whose content is not changed, because the owner chooses the names in it."""
_OBJECTS_ON_TOP = frozenset({"sku", "tags", "identity", "plan"})
"""Members that must be objects at the top level. Elsewhere they may be strings, like `sku`."""
_OBJECTS = frozenset({
    "properties", "upgradePolicy", "virtualMachineProfile",
    "storageProfile", "osProfile", "networkProfile", "hardwareProfile", "imageReference", "osDisk",
    "scheduledEventsProfile", "terminateNotificationProfile", "osImageNotificationProfile",
    "scheduledEventsPolicy", "scheduledEventsAdditionalPublishingTargets",
    "eventGridAndResourceGraph", "userInitiatedReboot", "userInitiatedRedeploy",
    "allInstancesDown", "availabilitySet", "virtualMachineScaleSet", "billingProfile",
    "protectionPolicy",
    "linuxConfiguration", "windowsConfiguration", "diagnosticsProfile", "securityProfile",
})  # fmt: skip
_LISTS = frozenset({
    "zones", "networkInterfaces", "networkInterfaceConfigurations", "ipConfigurations", "dataDisks",
})  # fmt: skip
_BOOLEANS = frozenset({
    "enable", "enabled", "primary", "automaticallyApprove", "overprovision",
    "singlePlacementGroup", "provisionVMAgent", "enableAutomaticUpdates",
    "disablePasswordAuthentication", "enableIPForwarding", "enableAcceleratedNetworking",
    "doNotRunExtensionsOnOverprovisionedVMs", "enableAutomaticOSUpgrade",
    "disableAutomaticRollback", "autoUpgradeMinorVersion", "enableAutomaticUpgrade",
    "ultraSSDEnabled", "zoneBalance", "writeAcceleratorEnabled", "protectFromScaleIn",
    "protectFromScaleSetActions",
})  # fmt: skip


def merge(before: Json, requested: Json) -> Json:
    """Returns the new body of the resource. Raises ArmError if a member has the wrong type."""
    return _over(before, without_read_only(requested))


def without_read_only(body: Json) -> Json:
    """Returns the body without derived and secret members, and with real booleans.

    Null members stay in the body, because `merge` handles them.
    """
    read = {name: _read(name, value, name) for name, value in body.items()}
    found = {name: value for name, value in read.items() if name not in _READ_ONLY}
    if isinstance(found.get("properties"), dict):
        found["properties"] = _writable(found["properties"])
    return found


def _writable(properties: Json) -> Json:
    found = {n: each for n, each in properties.items() if n not in _READ_ONLY_PROPERTIES}
    profile = found.get("virtualMachineProfile")
    if isinstance(profile, dict):
        found["virtualMachineProfile"] = {n: v for n, v in profile.items() if n != "timeCreated"}
    return found


def _over(before: Json, requested: Json) -> Json:
    found = dict(before)
    for name, value in requested.items():
        if value is None:
            if name in _NULL_MEANS_OFF:
                found.pop(name, None)
        elif isinstance(value, dict) and name not in _REPLACED:
            known = found.get(name)
            found[name] = _over(known if isinstance(known, dict) else {}, value)
        else:
            found[name] = _without_nulls(value)
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def _read(name: str, value: Any, path: str) -> Any:
    if value is None:
        return None
    if name in _BOOLEANS:
        return _boolean(value, path)
    is_object = name in _OBJECTS or (path == name and name in _OBJECTS_ON_TOP)
    if is_object and not isinstance(value, dict):
        raise wrong_kind(path, "an object")
    if name in _LISTS and not isinstance(value, list):
        raise wrong_kind(path, "a list")
    return value if name in _AS_WRITTEN else _inside(value, path)


def _inside(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {
            name: _read(name, each, f"{path}.{name}")
            for name, each in value.items()
            if name.lower() not in _SECRETS
        }
    if isinstance(value, list):
        return [_inside(each, f"{path}[{at}]") for at, each in enumerate(value)]
    return value


def _boolean(value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise wrong_kind(path, "a boolean")
    return word == "true"
