"""Reads what the driver needs from the XML of a domain or a volume."""

from xml.etree import ElementTree as ET

from fairwarning.drivers.libvirt.host import Disk
from fairwarning.drivers.libvirt.records import Record, from_element


def records_in(xml: str) -> dict[str, Record]:
    """Raises DriverFailed if a record was damaged."""
    found = (from_element(each) for each in ET.fromstring(xml).iterfind("metadata/*"))  # noqa: S314
    return {each.key: each for each in found if each is not None}


def disks_in(xml: str) -> tuple[Disk, ...]:
    """Return the disks that are volumes or files. CD-ROMs and floppies are left out."""
    disks = []
    for each in ET.fromstring(xml).iterfind("devices/disk"):  # noqa: S314
        source, target = each.find("source"), each.find("target")
        if source is None or target is None or each.get("device", "disk") != "disk":
            continue
        disk = Disk(
            target=target.get("dev", ""),
            pool=source.get("pool", ""),
            volume=source.get("volume", ""),
            path=source.get("file", ""),
        )
        if disk.volume or disk.path:
            disks.append(disk)
    return tuple(disks)


def new_volume(name: str, capacity: int, format: str) -> str:
    volume = ET.Element("volume")
    ET.SubElement(volume, "name").text = name
    ET.SubElement(volume, "capacity").text = str(capacity)
    if format:
        ET.SubElement(ET.SubElement(volume, "target"), "format", type=format)
    return ET.tostring(volume, encoding="unicode")


def volume_format(xml: str) -> str:
    found = ET.fromstring(xml).find("target/format")  # noqa: S314
    return "" if found is None else found.get("type", "")


def volume_capacity(xml: str) -> int:
    return int(ET.fromstring(xml).findtext("capacity") or 0)  # noqa: S314
