"""Packs files for the machine in a tar archive, which is its second disk."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_GUEST = Path(__file__).resolve().parent / "guest"


def pack(folder: Path) -> Path:
    """Packs the client's wheel, those that it needs, `deploy/`, and the check's own files."""
    wheels = folder / "wheels"
    _build(wheels)
    archive = folder / "files.tar"
    with tarfile.open(archive, "w") as packing:
        packing.add(wheels, "wheels")
        packing.add(ROOT / "deploy", "deploy")
        packing.add(_GUEST, "guest")
    return archive


def _build(wheels: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
               "--constraint", str(ROOT / "constraints.txt"), "--wheel-dir", str(wheels),
               f"{ROOT / 'packages' / 'client'}[logind]"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, f"the client's wheel could not be built: {done.stderr.strip()}"
