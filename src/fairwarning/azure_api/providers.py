"""These handlers list resource providers and their types. All of them count as registered."""

from collections.abc import Mapping

from fairwarning.azure_api.regions import REGIONS
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS

TYPES: Mapping[str, tuple[str, ...]] = {
    "Microsoft.Compute": (
        "availabilitySets", "virtualMachines", "virtualMachineScaleSets",
        "virtualMachineScaleSets/virtualMachines", "locations/operations", "locations/publishers",
        "locations/usages", "locations/vmSizes",
    ),
    "Microsoft.Maintenance": (
        "scheduledEvents", "maintenanceConfigurations", "configurationAssignments", "applyUpdates",
        "updates",
    ),
    "Microsoft.Network": (
        "virtualNetworks", "virtualNetworks/subnets", "networkInterfaces", "publicIPAddresses",
        "loadBalancers", "networkSecurityGroups",
    ),
    "Microsoft.Authorization": ("locks",),
    "Microsoft.Insights": ("autoscaleSettings",),
    "Microsoft.Resources": ("subscriptions", "resourceGroups", "deployments", "tags"),
}  # fmt: skip


async def list_providers(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, {"value": [_provider_json(call, namespace) for namespace in TYPES]})


async def get(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, _provider_json(call, call.path.namespace))


def _provider_json(call: ArmCall, namespace: str) -> Json:
    return {
        "id": f"/subscriptions/{call.path.subscription}/providers/{namespace}",
        "namespace": namespace,
        "registrationPolicy": "RegistrationFree",
        "registrationState": "Registered",
        "resourceTypes": [
            {
                "resourceType": type,
                "locations": list(REGIONS.values()),
                "apiVersions": [API_VERSIONS[namespace]],
                "capabilities": "SupportsTags, SupportsLocation" if "/" not in type else "None",
            }
            for type in TYPES[namespace]
        ],
    }


ROUTES: Routes = {
    ("GET", "microsoft.resources/subscriptions", "providers"): list_providers,
    **{("GET", namespace.lower(), ""): get for namespace in TYPES},
    **{("POST", namespace.lower(), "register"): get for namespace in TYPES},
}
