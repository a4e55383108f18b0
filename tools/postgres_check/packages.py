"""The Debian packages that the check needs, and the command to install them."""

import shutil
from pathlib import Path

from tools.debian_packages import SYSTEM_PATH

_SERVERS = Path("/usr/lib/postgresql")


def debian_programs() -> Path | None:
    """Returns the folder of Debian's newest PostgreSQL, or None. It has TLS, unlike the wheel."""
    found = [each.parent for each in _SERVERS.glob("*/bin/postgres")]
    return max(found, key=lambda folder: float(folder.parent.name), default=None)


def missing() -> list[str]:
    """Returns the names of the packages that are missing."""
    packages = []
    if shutil.which("pgbouncer", path=SYSTEM_PATH) is None:
        packages.append("pgbouncer")
    if debian_programs() is None:
        packages.append("postgresql")
    return packages


def install() -> list[str]:
    return ["apt-get", "install", "--yes", "--no-install-recommends", *missing()]
