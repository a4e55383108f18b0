"""The Debian packages that the check needs, and the command to install them."""

import glob
import importlib.util
import shutil

NEWTONSOFT = "/usr/lib/cli/Newtonsoft.Json-*/Newtonsoft.Json.dll"

_PROGRAMS = {
    "curl": "curl",
    "mcs": "mono-mcs",
    "mono": "mono-runtime",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
_FILES = {NEWTONSOFT: "libnewtonsoft-json5.0-cil"}
PACKAGES = sorted({*_PROGRAMS.values(), *_FILES.values()})
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]


def missing() -> list[str]:
    """Returns what is missing, each line with what to do about it."""
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    absent += [pattern for pattern in _FILES if not glob.glob(pattern)]
    lines = []
    if absent:
        lines.append(f"missing: {', '.join(absent)}; run: {' '.join(INSTALL)}")
    if importlib.util.find_spec("pyroute2") is None:
        lines.append("missing: pyroute2; run: pip install 'fairwarning[test]'")
    return lines
