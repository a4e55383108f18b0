"""Resource providers: which types there are. They need no registration."""

from collections.abc import Mapping

from fairwarning.azure_api.catalogue import REGIONS
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS

TYPES: Mapping[str, tuple[str, ...]] = {
    "Microsoft.Compute": (
        "availabilitySets", "virtualMachines", "virtualMachineScaleSets",
        "virtualMachineScaleSets/virtualMachines", "locations/operations", "locations/publishers",
        "locations/usages", "locations/vmSizes",
    ),
    "Microsoft.Maintenance": ("scheduledEvents",),
    "Microsoft.Network": (
        "virtualNetworks", "virtualNetworks/subnets", "networkInterfaces", "publicIPAddresses",
        "loadBalancers", "networkSecurityGroups",
    ),
    "Microsoft.Resources": ("subscriptions", "resourceGroups", "deployments"),
}  # fmt: skip


async def list_all(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, {"value": [_shown(call, namespace) for namespace in TYPES]})


async def show(_: Arm, call: ArmCall) -> Reply:
    return Reply(200, _shown(call, call.path.namespace))


def _shown(call: ArmCall, namespace: str) -> Json:
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
    ("GET", "microsoft.resources/subscriptions", "providers"): list_all,
    **{("GET", namespace.lower(), ""): show for namespace in TYPES},
    **{("POST", namespace.lower(), "register"): show for namespace in TYPES},
}
