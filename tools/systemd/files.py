"""Packs files for the machine in a tar archive, which is its second disk."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_GUEST = Path(__file__).resolve().parent / "guest"
_CONSTRAINTS = ("--constraint", str(ROOT / "constraints.txt"))


def pack_client(folder: Path) -> Path:
    """Packs the client's wheel, those that it needs, `deploy/`, and the check's own files."""
    client = f"{ROOT / 'packages' / 'client'}[logind]"
    _pip("wheel", *_CONSTRAINTS, "--wheel-dir", str(folder / "wheels"), client)
    return _pack(folder, "wheels")


def pack_server(folder: Path) -> Path:
    """Packs the server with all that it needs, installed and compiled, because an emulated machine
    takes minutes for that. Debian's Python is 3.11, whatever runs this.
    """
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("fairwarning-*.whl")
    for_debian = ("--python-version", "3.11", "--only-binary=:all:")
    _pip("install", *_CONSTRAINTS, *for_debian, "--target", str(folder / "installed"), str(wheel))
    return _pack(folder, "installed")


def _pip(command: str, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, f"pip {command} failed: {done.stderr.strip()}"


def _pack(folder: Path, name: str) -> Path:
    archive = folder / "files.tar"
    with tarfile.open(archive, "w") as packing:
        packing.add(folder / name, name)
        packing.add(ROOT / "deploy", "deploy")
        packing.add(_GUEST, "guest")
    return archive
