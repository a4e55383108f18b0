"""The Debian packages that the check needs, and the command to install them."""

import shutil

_PROGRAMS = {
    "e2fsck": "e2fsprogs",
    "genext2fs": "genext2fs",
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "resize2fs": "e2fsprogs",
    "setpriv": "util-linux",
    "tune2fs": "e2fsprogs",
}
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", *sorted({*_PROGRAMS.values()})]
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where these programs are; an ordinary user's PATH often lacks the sbin folders."""


def missing() -> list[str]:
    """Returns the programs that are missing."""
    return [name for name in _PROGRAMS if shutil.which(name, path=SYSTEM_PATH) is None]


def program(name: str) -> str:
    found = shutil.which(name, path=SYSTEM_PATH)
    assert found is not None, f"{name} was there a moment ago"
    return found
