"""Short names of images, as az looks them up: `--image UbuntuLTS`.

az's own list has dropped the name that Azure's documentation of Scheduled Events uses, so ours
has old and new ones.
"""

from collections.abc import Iterator, Mapping

_LINUX = """
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
_WINDOWS = """
Win2012Datacenter       MicrosoftWindowsServer:WindowsServer:2012-Datacenter
Win2012R2Datacenter     MicrosoftWindowsServer:WindowsServer:2012-R2-Datacenter
Win2016Datacenter       MicrosoftWindowsServer:WindowsServer:2016-datacenter-gensecond
Win2019Datacenter       MicrosoftWindowsServer:WindowsServer:2019-datacenter-gensecond
Win2022AzureEditionCore MicrosoftWindowsServer:WindowsServer:2022-datacenter-azure-edition-core
Win2022Datacenter       MicrosoftWindowsServer:WindowsServer:2022-datacenter-g2
"""


def alias_document() -> Mapping[str, object]:
    value = {"Linux": dict(_images(_LINUX)), "Windows": dict(_images(_WINDOWS))}
    return {"outputs": {"aliases": {"type": "object", "value": value}}}


def alias_names() -> list[str]:
    return [alias for table in (_LINUX, _WINDOWS) for alias, _ in _images(table)]


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
