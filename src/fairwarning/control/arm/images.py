"""Images and sizes, as far as az asks for them before it creates something.

There are no images here, so every one that somebody names in full exists, in one version.
"""

from fairwarning.control.arm.aliases import alias_names
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply, Routes
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.filtering import conditions, top_of
from fairwarning.control.arm.inventory import scopes_in
from fairwarning.control.arm.paths import ResourcePath
from fairwarning.control.arm.regions import REGIONS
from fairwarning.control.arm.sizes import SIZES
from fairwarning.control.arm.templates.faults import shown
from fairwarning.core.model import ScopeKind

VERSION = "1.0.0"
UNLIMITED = 2_147_483_647
_LINUX = ("ubuntu", "debian", "rhel", "centos", "sles", "suse", "linux", "mariner", "flatcar")


async def list_versions(_: Arm, call: ArmCall) -> Reply:
    """A bare array, unlike every other list."""
    top = call.query.get("$top")
    versions = [_shown(call.path, VERSION)]
    return Reply(200, versions if top is None else versions[: top_of(top)])


async def show_version(_: Arm, call: ArmCall) -> Reply:
    version = call.path.name
    is_latest = version.lower() == "latest"
    return Reply(200, _shown(call.path.up(), VERSION if is_latest else version))


def _shown(path: ResourcePath, version: str) -> Json:
    location, publisher, _, offer, _ = path.names
    system = {"operatingSystem": operating_system(publisher, offer)}
    return {
        "id": f"{path.id}/versions/{version}",
        "name": version,
        "location": location,
        "properties": {"osDiskImage": system, "dataDiskImages": []},
    }


def operating_system(publisher: str, offer: str) -> str:
    """Microsoft offers its database on both, and the offer says which."""
    publisher, offer = publisher.lower(), offer.lower()
    if any(word in offer for word in _LINUX):
        return "Linux"
    is_windows = "windows" in publisher or "windows" in offer
    return "Windows" if is_windows or publisher.startswith("microsoftsql") else "Linux"


async def refuse_image(_: Arm, call: ArmCall) -> Reply:
    """az asks for an image of the group when it does not know a short name."""
    raise ArmError(
        404,
        "ImageNotFound",
        f"There is no image '{shown(call.path.name)}'; write publisher:offer:sku:version, or one "
        f"of {', '.join(alias_names())}.",
    )


async def list_skus(_: Arm, call: ArmCall) -> Reply:
    wanted = conditions(call, ("location",)).get("location", "").replace(" ", "").lower()
    locations = [wanted] if wanted else list(REGIONS)
    return Reply(200, {"value": [size.sku(each) for each in locations for size in SIZES]})


async def list_sizes(_: Arm, __: ArmCall) -> Reply:
    return Reply(200, {"value": [size.json() for size in SIZES]})


async def list_usages(arm: Arm, call: ArmCall) -> Reply:
    counts = dict.fromkeys(("availabilitySets", "virtualMachineScaleSets", "virtualMachines"), 0)
    sets: set[tuple[str, str]] = set()
    async for scope in scopes_in(arm, call.path.subscription):
        roster = scope.roster
        if roster.location.lower() != call.path.name.lower():
            continue
        counts["virtualMachines"] += len(roster.live)
        counts["availabilitySets"] += roster.kind is ScopeKind.AVAILABILITY_SET
        if roster.kind is ScopeKind.SCALE_SET:
            sets.add((roster.resource_group, roster.resource))
    counts["virtualMachineScaleSets"] = len(sets)
    return Reply(200, {"value": [_usage(name, count) for name, count in counts.items()]})


def _usage(name: str, count: int) -> Json:
    return {
        "name": {"value": name, "localizedValue": name},
        "unit": "Count",
        "currentValue": count,
        "limit": UNLIMITED,
    }


_SKU = "microsoft.compute/locations/publishers/artifacttypes/offers/skus"
ROUTES: Routes = {
    ("GET", _SKU, "versions"): list_versions,
    ("GET", f"{_SKU}/versions", ""): show_version,
    ("GET", "microsoft.compute/images", ""): refuse_image,
    ("GET", "microsoft.compute", "skus"): list_skus,
    ("GET", "microsoft.compute/locations", "vmsizes"): list_sizes,
    ("GET", "microsoft.compute/locations", "usages"): list_usages,
}
