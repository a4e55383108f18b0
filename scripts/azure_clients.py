"""Installs the clients of Azure that `./test azure` runs: az, the JavaScript SDK and others.

None of them is changed in any way.
"""

import shutil
import sys
import zipfile
from pathlib import Path

from cached_environment import ensure_environment, pip_install, run_slowly

TOOLS = Path(__file__).resolve().parent.parent / "tools"
CLIENTS = TOOLS / "azure_clients"
COLLECTION = "ansible_collections/azure/azcollection/"


def ensure_az() -> Path:
    """Returns the pinned `az`, and installs it if need be."""
    pins = TOOLS / "azure_cli" / "constraints.txt"
    az = _pinned(pins, "azure-cli")
    folder = ensure_environment(
        "azure-cli",
        f"{az}, about 730 MB, a few minutes,",
        [pins],
        lambda folder: pip_install(folder, "--constraint", pins, az),
    )
    return folder / "bin" / "az"


def ensure_clients() -> list[str]:
    """Returns `NAME=FOLDER` for each other client, and installs those that are missing."""
    found = [f"javascript={_javascript()}", f"python_2020={_python_2020()}"]
    if sys.version_info >= (3, 12):
        print("== ansible: left out, because its ansible-core needs Python 3.11", flush=True)
        return found
    return [*found, f"ansible={_ansible()}"]


def _javascript() -> Path:
    source = CLIENTS / "javascript"
    pins = [source / name for name in ("constraints.txt", "package.json", "package-lock.json")]

    def install(folder: Path) -> int:
        if code := pip_install(folder, "--requirement", pins[0]):
            return code
        for each in pins[1:]:
            shutil.copy(each, folder)
        npm = [folder / "bin" / "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
        return run_slowly(npm, folder)

    what = "Node.js and the Azure SDK for JavaScript, about 320 MB,"
    return ensure_environment("azure-javascript", what, pins, install)


def _python_2020() -> Path:
    pins = CLIENTS / "python_2020" / "constraints.txt"
    return ensure_environment(
        "azure-python-2020",
        "the Azure SDK for Python of 2020, about 90 MB,",
        [pins],
        lambda folder: pip_install(folder, "--no-deps", "--requirement", pins),
    )


def _ansible() -> Path:
    pins, collection = (
        CLIENTS / "ansible" / name for name in ("constraints.txt", "collection.txt")
    )

    def install(folder: Path) -> int:
        if code := pip_install(folder, "--no-deps", "--requirement", pins):
            return code
        pip = [folder / "bin" / "python", "-m", "pip", "download", "--quiet", "--no-deps"]
        downloads = folder / "downloads"
        if code := run_slowly([*pip, "--dest", downloads, "--requirement", collection]):
            return code
        # The package has a hundred collections; one of them is wanted.
        (wheel,) = downloads.iterdir()
        with zipfile.ZipFile(wheel) as packed:
            members = [each for each in packed.namelist() if each.startswith(COLLECTION)]
            packed.extractall(folder, members)
        shutil.rmtree(downloads)
        return 0

    what = "Ansible and what azure.azcollection needs, about 920 MB, a few minutes,"
    return ensure_environment("azure-ansible", what, [pins, collection], install)


def _pinned(pins: Path, package: str) -> str:
    return next(line for line in pins.read_text().split() if line.startswith(f"{package}=="))
