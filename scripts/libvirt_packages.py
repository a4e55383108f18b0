"""Says which Debian packages the tests of the driver libvirt need and this machine lacks.

libvirt-python is on PyPI as source only, so that it fits the machine's libvirt. It has to be built.
"""

import shutil
import subprocess
import sysconfig
from pathlib import Path


def missing() -> list[str]:
    lacks = {
        "gcc": shutil.which("gcc") is None,
        "libc6-dev": not Path("/usr/include/stdlib.h").exists(),
        "python3-dev": not (Path(sysconfig.get_path("include")) / "Python.h").exists(),
        "pkg-config": shutil.which("pkg-config") is None,
        "libvirt-dev": not _has_headers(),
        "libvirt-daemon": not Path("/usr/sbin/libvirtd").exists(),
    }
    return [package for package, is_missing in lacks.items() if is_missing]


def _has_headers() -> bool:
    if shutil.which("pkg-config") is None:
        return False
    done = subprocess.run(["pkg-config", "--exists", "libvirt"], check=False)
    return done.returncode == 0
