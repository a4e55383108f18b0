"""Runs the virtual machine: QEMU without acceleration, and no network but the endpoint.

What the machine sends to 169.254.169.254:80 goes through `relay.py` to our server, and all else
that it sends goes nowhere. Its disk is a copy in a file that has no name, so it ends with QEMU.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tools.systemd.guest import Guest
from tools.systemd.image import Image
from tools.systemd.json_lines import Monitor, wait_until
from tools.systemd.packages import program

ENDPOINT = "169.254.169.254:80"
BOOT_S_MAX = 900.0
"""It ends a hang. A boot takes half a minute, and five on a host that is very busy."""
_RELAY = Path(__file__).resolve().parent / "relay.py"
_KERNEL_LINE = "root=/dev/vda rw console=ttyS0 quiet mitigations=off panic=-1"
_WIRE = "user,id=wire,net=169.254.0.0/16,host=169.254.0.2,restrict=on"
_HAND = "org.qemu.guest_agent.0"


class Machine:
    def __init__(self, monitor: Monitor, guest: Guest) -> None:
        self._monitor = monitor
        self.guest = guest

    def wait_until_up(self) -> float:
        """Waits for the boot and returns how long it took."""
        began_s = time.monotonic()
        self._monitor.wait_for("VSERPORT_CHANGE", BOOT_S_MAX, id="hand", open=True)
        self.guest.greet()
        return time.monotonic() - began_s

    def reboot(self) -> None:
        """Reboots the guest with systemctl. Returns when the machine is about to boot."""
        self.guest.begin("systemctl reboot")
        self._monitor.wait_for("RESET", BOOT_S_MAX, guest=True)

    def pull_the_plug(self) -> None:
        """Resets the machine without a warning, so that nothing more is written."""
        self._monitor.order("system_reset")
        self._monitor.wait_for("RESET", BOOT_S_MAX, guest=False)

    def freeze(self, seconds: float) -> None:
        self._monitor.order("stop")
        time.sleep(seconds)
        self._monitor.order("cont")


@contextmanager
def powered(image: Image, files: Path, server: Path, folder: Path) -> Iterator[Machine]:
    """Boots a machine. `files` is its second disk; the relay reads the file `server`."""
    monitor, hand, console = (folder / each for each in ("monitor", "hand", "console"))
    command = [
        # Whatever ends us ends QEMU too.
        program("setpriv"), "--pdeathsig=KILL",
        program("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-display", "none",
        "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "768",
        "-kernel", str(image.kernel), "-initrd", str(image.ramdisk), "-append", _KERNEL_LINE,
        "-drive", f"file={image.disk},format=raw,if=virtio,snapshot=on",
        "-drive", f"file={files},format=raw,if=virtio,readonly=on",
        "-netdev", f"{_WIRE},guestfwd=tcp:{ENDPOINT}-cmd:{sys.executable} {_RELAY} {server}",
        "-device", "virtio-net-pci,netdev=wire,romfile=",
        "-device", "virtio-serial",
        "-chardev", f"socket,id=hand,path={hand},server=on,wait=off",
        "-device", f"virtserialport,id=hand,chardev=hand,name={_HAND}",
        "-qmp", f"unix:{monitor},server=on,wait=off",
        "-serial", f"file:{console}",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as qemu:  # noqa: S603
        try:
            wait_until("QEMU runs", lambda: hand.exists() or qemu.poll() is not None, 30, 0.05)
            if qemu.poll() is not None and qemu.stderr is not None:
                raise AssertionError(f"QEMU does not start: {qemu.stderr.read().strip()}")
            with closing(Monitor(monitor)) as switches, closing(Guest(hand)) as guest:
                yield Machine(switches, guest)
        except TimeoutError:
            said = "\n".join(console.read_text(errors="replace").splitlines()[-15:])
            raise AssertionError(f"the VM hangs; its console's last words:\n{said}") from None
        finally:
            qemu.kill()
