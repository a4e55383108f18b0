"""Makes a small Debian with systemd, a disk and a kernel for QEMU, once for all checkouts.

It knows nothing of Fairwarning. It lives in the user's cache folder, under a name that changes
with everything that it is made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools.systemd.packages import SYSTEM_PATH, program

SUITE = "bookworm"
SIZE = "900M"
_PACKAGES = (
    "dbus", "iproute2", "libnss-systemd", "linux-image-cloud-amd64", "polkitd", "python3",
    "python3-venv", "qemu-guest-agent", "systemd", "systemd-sysv", "udev",
)  # fmt: skip
_RECIPE = Path(__file__).resolve()
_SEED = _RECIPE.parent / "guest" / "seed.sh"
_FINISH = _RECIPE.parent / "guest" / "finish.sh"
_UNREAD = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    disk: Path
    kernel: Path
    ramdisk: Path


def ensure_image() -> Image:
    """Returns the image and makes it if need be. Raises AssertionError."""
    folder = _folder()
    if not folder.exists():
        print(
            f"Making a Debian {SUITE} with systemd in {folder} (once, about 500 MB, a minute) …",
            file=sys.stderr,
        )
        _make(folder)
    return Image(disk=folder / "disk.img", kernel=folder / "vmlinuz", ramdisk=folder / "initrd.img")


def _folder() -> Path:
    inputs = [each.read_bytes() for each in (_RECIPE, _SEED, _FINISH)]
    fingerprint = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fairwarning" / f"systemd-vm-{fingerprint}"


def _make(folder: Path) -> None:
    """Makes the image under another name first, so that an unfinished one is never used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as name:
        made = Path(name) / "image"
        made.mkdir()
        _run([program("mmdebstrap"), *_options(made), SUITE, str(made / "disk.img")])
        _make_journalled(made / "disk.img")
        if not folder.exists():
            shutil.move(made, folder)


def _options(made: Path) -> list[str]:
    hooks = {
        "--essential-hook": [f'sh "{_SEED}" "$1"'],
        "--customize-hook": [
            f'sh "{_FINISH}" "$1"',
            *(f"download /{each} {made / each}" for each in ("vmlinuz", "initrd.img")),
        ],
    }
    return [
        "--quiet",
        "--variant=minbase",
        "--format=ext2",
        f"--include={','.join(_PACKAGES)}",
        # The image is thrown away if anything goes wrong, so nothing has to be forced to disk.
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={each}" for each in _UNREAD),
        *(f"{kind}={hook}" for kind, each in hooks.items() for hook in each),
    ]


def _make_journalled(disk: Path) -> None:
    """Adds a journal, as a server's disk has, so that synced data survives a loss of power."""
    _run([program("e2fsck"), "-fp", str(disk)], codes=(0, 1))
    _run([program("tune2fs"), "-j", "-c0", "-i0", str(disk)])
    _run([program("resize2fs"), str(disk), SIZE])


def _run(command: list[str], codes: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C"},
    )
    said = "\n".join(done.stdout.splitlines()[-15:])
    assert done.returncode in codes, (
        f"the image could not be made. Debian's archive must be reachable the first time, and "
        f"2 GB must be free. {Path(command[0]).name} ended with code {done.returncode}:\n{said}"
    )
