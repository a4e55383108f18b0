"""These handlers list images, VM sizes and regions, which az asks for before it creates VMs.

This server has no real images. It accepts every full image name, and shows one version of it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import scopes_in
from fairwarning.azure_api.lists import read_filter, top_of
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.regions import REGIONS
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.templates.errors import shorten
from fairwarning.core.model import ScopeKind

VERSION = "1.0.0"
UNLIMITED = 2_147_483_647
_LINUX = ("ubuntu", "debian", "rhel", "centos", "sles", "suse", "linux", "mariner", "flatcar")


async def list_versions(_: Arm, call: ArmCall) -> Reply:
    """Replies with a plain array. Azure does so too, although its other lists are objects."""
    top = call.query.get("$top")
    versions = [_version_json(call.path, VERSION)]
    return Reply(200, versions if top is None else versions[: top_of(top)])


async def get_version(_: Arm, call: ArmCall) -> Reply:
    version = call.path.name
    is_latest = version.lower() == "latest"
    return Reply(200, _version_json(call.path.up(), VERSION if is_latest else version))


def _version_json(path: ResourcePath, version: str) -> Json:
    location, publisher, _, offer, _ = path.names
    system = {"operatingSystem": operating_system(publisher, offer)}
    return {
        "id": f"{path.id}/versions/{version}",
        "name": version,
        "location": location,
        "properties": {"osDiskImage": system, "dataDiskImages": []},
    }


def operating_system(publisher: str, offer: str) -> str:
    """Guesses whether an image has Windows or Linux.

    The offer is checked before the publisher, because Microsoft's SQL Server exists for both.
    """
    publisher, offer = publisher.lower(), offer.lower()
    if any(word in offer for word in _LINUX):
        return "Linux"
    is_windows = "windows" in publisher or "windows" in offer
    return "Windows" if is_windows or publisher.startswith("microsoftsql") else "Linux"


async def refuse_image(_: Arm, call: ArmCall) -> Reply:
    """Raises ArmError for every image.

    az looks for an image of the resource group if it does not know a short image name.
    """
    raise ArmError(
        404,
        "ImageNotFound",
        f"There is no image '{shorten(call.path.name)}'; write publisher:offer:sku:version, or one "
        f"of {', '.join(alias_names())}.",
    )


async def list_skus(_: Arm, call: ArmCall) -> Reply:
    wanted = read_filter(call, ("location",)).get("location", "").replace(" ", "").lower()
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
_LINUX_ALIASES = """
AzureLinux4             microsoftazurelinux:azurelinux-4:4
CentOS                  OpenLogic:CentOS:7.5
CentOS85Gen2            OpenLogic:CentOS:8_5-gen2
Debian                  Debian:debian-10:10
Debian11                Debian:debian-11:11-backports-gen2
Debian12                Debian:debian-12:12-gen2
Flatcar                 kinvolk:flatcar-container-linux-free:stable
FlatcarLinuxFreeGen2    kinvolk:flatcar-container-linux-free:stable-gen2
OpenSuseLeap154Gen2     SUSE:openSUSE-leap-15-4:gen2
RHEL                    RedHat:RHEL:7-LVM
RHELRaw8LVMGen2         RedHat:RHEL:8-lvm-gen2
SLES                    SUSE:SLES:15
SuseSles15SP3           SUSE:sles-15-sp3:gen2
Ubuntu2204              Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2
Ubuntu2404              Canonical:ubuntu-24_04-lts:server
UbuntuLTS               Canonical:UbuntuServer:18.04-LTS
"""
_WINDOWS_ALIASES = """
Win2012Datacenter       MicrosoftWindowsServer:WindowsServer:2012-Datacenter
Win2012R2Datacenter     MicrosoftWindowsServer:WindowsServer:2012-R2-Datacenter
Win2016Datacenter       MicrosoftWindowsServer:WindowsServer:2016-datacenter-gensecond
Win2019Datacenter       MicrosoftWindowsServer:WindowsServer:2019-datacenter-gensecond
Win2022AzureEditionCore MicrosoftWindowsServer:WindowsServer:2022-datacenter-azure-edition-core
Win2022Datacenter       MicrosoftWindowsServer:WindowsServer:2022-datacenter-g2
"""


def alias_names() -> list[str]:
    return [alias for table in (_LINUX_ALIASES, _WINDOWS_ALIASES) for alias, _ in _images(table)]


def _images(table: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for line in table.strip().splitlines():
        alias, image = line.split()
        publisher, offer, sku = image.split(":")
        yield (
            alias,
            {
                "publisher": publisher,
                "offer": offer,
                "sku": sku,
                "version": "latest",
                "architecture": "x64",
            },
        )


class Size(NamedTuple):
    name: str
    cores: int
    memory_gb: int
    disks: int

    def json(self) -> Json:
        return {
            "name": self.name,
            "numberOfCores": self.cores,
            "osDiskSizeInMB": 1_047_552,
            "resourceDiskSizeInMB": 0,
            "memoryInMB": self.memory_gb * 1_024,
            "maxDataDiskCount": self.disks,
        }

    def sku(self, location: str) -> Json:
        capabilities = {
            "vCPUs": self.cores,
            "MemoryGB": self.memory_gb,
            "MaxDataDiskCount": self.disks,
            "LowPriorityCapable": True,
            "HyperVGenerations": "V1,V2",
            "CpuArchitectureType": "x64",
        }
        return {
            "resourceType": "virtualMachines",
            "name": self.name,
            "tier": "Standard",
            "size": self.name.removeprefix("Standard_"),
            "family": "standardFamily",
            "locations": [location],
            "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
            "capabilities": [{"name": n, "value": str(v)} for n, v in capabilities.items()],
            "restrictions": [],
        }


SIZES = (
    Size("Standard_B1s", 1, 1, 2),
    Size("Standard_B2s", 2, 4, 4),
    Size("Standard_D2as_v5", 2, 8, 4),
    Size("Standard_D2s_v3", 2, 8, 4),
    Size("Standard_D2s_v5", 2, 8, 4),
    Size("Standard_D4s_v5", 4, 16, 8),
    Size("Standard_DS1_v2", 1, 4, 4),
    Size("Standard_DS2_v2", 2, 7, 8),
    Size("Standard_E2s_v5", 2, 16, 4),
    Size("Standard_F2s_v2", 2, 4, 4),
)
ROUTES: Routes = {
    ("GET", _SKU, "versions"): list_versions,
    ("GET", f"{_SKU}/versions", ""): get_version,
    ("GET", "microsoft.compute/images", ""): refuse_image,
    ("GET", "microsoft.compute", "skus"): list_skus,
    ("GET", "microsoft.compute/locations", "vmsizes"): list_sizes,
    ("GET", "microsoft.compute/locations", "usages"): list_usages,
}


def alias_document() -> Mapping[str, object]:
    value = {"Linux": dict(_images(_LINUX_ALIASES)), "Windows": dict(_images(_WINDOWS_ALIASES))}
    return {"outputs": {"aliases": {"type": "object", "value": value}}}
