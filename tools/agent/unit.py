"""Lets systemd check the unit file: it must be valid, and expose little."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.agent.packages import program

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = "fairwarning-agent.service"
INSTALLED = "/opt/fairwarning/bin/fairwarning-agent"
EXPOSURE_MAX = {"as it is shipped": 1.5, "with root.conf": 4.0}
"""The worst allowed score out of 10; most services of a system have 9 and more."""


def check_unit() -> list[str]:
    lines = []
    for name, most in EXPOSURE_MAX.items():
        with tempfile.TemporaryDirectory() as folder:
            unit = _copy(Path(folder), is_root="root" in name)
            said = _analyze("verify", "--man=no", str(unit))
            assert not said.strip(), f"systemd-analyze verify, {name}: {said}"
            judged = _analyze(
                "security", "--offline=yes", "--no-pager", f"--threshold={most * 10:.0f}", str(unit)
            )
        verdict = next(line for line in judged.splitlines() if "exposure level" in line)
        lines.append(f"{name}: {verdict.strip('→ ').rstrip(' 🙂😀😐')}")
    return lines


def _copy(folder: Path, *, is_root: bool) -> Path:
    text = (DEPLOY / UNIT).read_text()
    assert INSTALLED in text
    unit = folder / UNIT
    # A program that is there: whether ours is installed is not what is judged.
    unit.write_text(text.replace(INSTALLED, sys.executable))
    if is_root:
        (folder / f"{UNIT}.d").mkdir()
        (folder / f"{UNIT}.d" / "root.conf").write_text((DEPLOY / "root.conf").read_text())
    return unit


def _analyze(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        [program("systemd-analyze"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"systemd-analyze {arguments[0]} says {done.stdout}"
    return done.stdout
