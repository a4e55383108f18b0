"""Guests: their domains and volumes, and their consoles."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt

from tests.support.patience import HANG_S
from tools.libvirt_guests.host import BRIDGE
from tools.libvirt_guests.image import Image

POOL = "guests"
BASE = "base"
_LOOK_S = 0.01
_DOMAIN = """
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>224</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{ramdisk}</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 fw.ip={address} {habits} </cmdline>
  </os>
  <features><acpi/></features>
  <on_reboot>restart</on_reboot>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    {disk}
    <interface type='bridge'>
      <mac address='{mac}'/>
      <source bridge='{bridge}'/>
      <target dev='{name}'/>
      <model type='virtio'/>
    </interface>
    <serial type='file'>
      <source path='{console}' append='on'/>
      <target port='0'/>
    </serial>
    {channel}
    <memballoon model='none'/>
  </devices>
</domain>
"""
_DISK = """<disk type='volume' device='disk'>
<driver name='qemu' type='raw' cache='none'/>
<source pool='{pool}' volume='{name}'/><target dev='vda' bus='virtio'/></disk>"""
_CHANNEL = """<channel type='unix'>
<target type='virtio' name='org.qemu.guest_agent.0'/></channel>"""
_POOL = "<pool type='dir'><name>{pool}</name><target><path>{path}</path></target></pool>"


@dataclass(frozen=True, slots=True)
class Line:
    at_s: float
    """When this process saw it, by the monotonic clock."""
    words: tuple[str, ...]


class Console:
    """What a guest has said, since its domain was made. A guest that moves keeps its console."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self.lines: list[Line] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()

    def ticks(self) -> list[Line]:
        return [each for each in list(self.lines) if each.words[0] == "tick"]

    def boots(self) -> list[str]:
        """Returns the boot ids, each once and in order."""
        return list(dict.fromkeys(each.words[2] for each in self.ticks()))

    def said(self, *words: str) -> int:
        """Returns how many lines begin with these words."""
        return sum(each.words[: len(words)] == words for each in list(self.lines))

    def wait_for(self, what: str, is_so: Callable[["Console"], bool]) -> None:
        wait_until(f"{what}; the console ends with {self.tail()}", lambda: is_so(self))

    def wait_for_ticks(self, number: int = 3) -> None:
        """Waits until the guest ticks on."""
        before = len(self.ticks())
        self.wait_for("the guest ticks", lambda console: len(console.ticks()) >= before + number)

    def tail(self) -> list[str]:
        return [" ".join(each.words) for each in self.lines[-6:]]

    def _follow(self) -> None:
        rest = b""
        with self.path.open("rb") as file:
            while not self._ends.wait(_LOOK_S):
                *whole, rest = (rest + file.read()).split(b"\n")
                for line in whole:
                    if words := tuple(line.decode(errors="replace").split()):
                        self.lines.append(Line(time.monotonic(), words))


@dataclass(slots=True, kw_only=True)
class Guest:
    name: str
    address: str
    habits: str = ""
    """Words for the kernel's command line, which `guest/init` explains."""
    has_disk: bool = True
    console: Console = field(init=False)

    @property
    def mac(self) -> str:
        return f"52:54:00:00:00:{int(self.address.rpartition('.')[2]):02x}"

    def xml(self, image: Image, console: Path) -> str:
        return _DOMAIN.format(
            name=self.name,
            kernel=image.kernel,
            ramdisk=image.ramdisk,
            address=self.address,
            habits=self.habits,
            disk=_DISK.format(pool=POOL, name=self.name) if self.has_disk else "",
            mac=self.mac,
            bridge=BRIDGE,
            console=console,
            channel=_CHANNEL if "fw.qga" in self.habits.split() else "",
        )


def define_pool(connection: Any, folder: Path) -> Any:
    pool = connection.storagePoolDefineXML(_POOL.format(pool=POOL, path=folder), 0)
    pool.create(0)
    return pool


def start_guest(connection: Any, guest: Guest, image: Image, folder: Path) -> None:
    path = folder / f"{guest.name}.console"
    guest.console = Console(path)
    connection.defineXML(guest.xml(image, path)).create()


def state_of(connection: Any, name: str) -> int:
    """Returns libvirt's number of the domain's state, or -1 if there is no such domain."""
    try:
        found: int = connection.lookupByName(name).state()[0]
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return -1
    return found


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < ends_s, f"not within {HANG_S:.0f} s: {what}"
        time.sleep(_LOOK_S)
