"""Lets systemd check the unit files: they must be valid, and expose little."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.debian_packages import program

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
AGENT, SERVER = "fairwarning-agent.service", "fairwarning.service"
CHECKS = (
    ("the agent as it is shipped", AGENT, None, 1.5),
    ("the agent with root.conf", AGENT, "root.conf", 4.0),
    ("the server as it is shipped", SERVER, None, 2.0),
)
"""What is checked, its unit and drop-in, and the worst allowed score out of 10.

Most services of a system have 9 and more.
"""


def check_unit() -> list[str]:
    lines = []
    for name, unit_name, drop_in, most in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            unit = _copy(Path(folder), unit_name, drop_in)
            said = _analyze("verify", "--man=no", str(unit))
            assert not said.strip(), f"systemd-analyze verify, {name}: {said}"
            judged = _analyze(
                "security", "--offline=yes", "--no-pager", f"--threshold={most * 10:.0f}", str(unit)
            )
        verdict = next(line for line in judged.splitlines() if "exposure level" in line)
        lines.append(f"{name}: {verdict.strip('→ ').rstrip(' 🙂😀😐')}")
    return lines


def _copy(folder: Path, name: str, drop_in: str | None) -> Path:
    installed = f"/opt/fairwarning/bin/{name.removesuffix('.service')}"
    text = (DEPLOY / name).read_text()
    assert installed in text
    unit = folder / name
    # A program that is there: whether ours is installed is not what is judged.
    unit.write_text(text.replace(installed, sys.executable))
    if drop_in is not None:
        (folder / f"{name}.d").mkdir()
        (folder / f"{name}.d" / drop_in).write_text((DEPLOY / drop_in).read_text())
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
