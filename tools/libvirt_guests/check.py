"""Checks the driver libvirt on two real libvirtds with QEMU guests, while our nodes are killed.

    python3 tools/libvirt_guests/check.py --install     gets the Debian packages that are missing
    python3 tools/libvirt_guests/check.py               one line for each thing seen; code 1 if not

It needs root. Everything happens in namespaces that are made for the run and end with it: nothing
is sent to 169.254.169.254 outside them, and a libvirtd of the machine is not touched. The guests
are emulated, so it takes some minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.debian_packages import Needs

NEEDS = Needs(
    programs={
        "apt-cache": "apt",
        "busybox": "busybox-static",
        "chroot": "coreutils",
        "cpio": "cpio",
        "dpkg": "dpkg",
        "ip": "iproute2",
        "libvirtd": "libvirt-daemon",
        "mke2fs": "e2fsprogs",
        "nsenter": "util-linux",
        "qemu-img": "qemu-utils",
        "qemu-system-x86_64": "qemu-system-x86",
        "unshare": "util-linux",
        "virsh": "libvirt-clients",
        "virt-qemu-run": "libvirt-daemon-driver-qemu",
    },
    modules=("libvirt", "pyroute2"),
)
_ROOT = Path(__file__).resolve().parents[2]
_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the driver libvirt on QEMU guests.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("this check needs root, to run libvirtds with guests on a bridge", file=sys.stderr)
        return _BAD_USAGE
    if options.install:
        NEEDS.install()
    for line in (lines := NEEDS.missing()):
        print(line, file=sys.stderr)
    if lines:
        return _BAD_USAGE
    return run_on_new_machine("tools.libvirt_guests.play")


def run_on_new_machine(module: str, *arguments: str) -> int:
    """Makes the image, and runs `module FOLDER ARGUMENTS…` in namespaces of its own."""
    # Only now: they need what was just found to be there.
    from tools.libvirt_guests.host import new_machine  # noqa: PLC0415
    from tools.libvirt_guests.image import make_image  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="fairwarning-guests-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            make_image(folder)
        except AssertionError as failure:
            print(f"FAIL  image      {failure}", flush=True)
            return 1
        reaper = [sys.executable, "-m", "tools.libvirt_guests.reaper", sys.executable]
        command = [*new_machine(), *reaper, "-m", module, name, *arguments]
        # Whatever else is written for a while is in this folder too, and goes with it.
        environment = {**os.environ, "TMPDIR": name}
        done = subprocess.run(command, cwd=_ROOT, env=environment, check=False)  # noqa: S603
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
