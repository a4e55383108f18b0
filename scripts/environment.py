"""Makes the project's own environment in .venv, once, with nothing but Python."""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / "bin" / "python"


def ensure(extra: str = "") -> Path:
    """Returns the environment's Python, with the project and the given extra installed."""
    if sys.version_info < (3, 11):  # noqa: UP036
        found = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"Fairwarning needs Python 3.11 or newer and this is {found}; call a newer one")
    stamp = FOLDER / f".ready-{extra or 'run'}"
    wanted = _fingerprint(extra)
    if not (PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted):
        print("Making the environment in .venv (once, up to a minute) …", file=sys.stderr)
        stamp.unlink(missing_ok=True)
        _make(extra)
        stamp.write_text(wanted)
    return PYTHON


def _fingerprint(extra: str) -> str:
    inputs = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([*inputs, extra.encode(), sys.version.encode()])).hexdigest()


def _make(extra: str) -> None:
    made_by = FOLDER / ".made-by"
    this_python = f"{sys.base_prefix} {sys.version}"
    if not (PYTHON.exists() and made_by.exists() and made_by.read_text() == this_python):
        # Never over the environment of another Python: the mixture would work with neither.
        try:
            venv.create(FOLDER, with_pip=True, clear=True, symlinks=True)
        except (subprocess.CalledProcessError, ImportError):
            sys.exit(
                "this Python cannot make virtual environments; on Debian or Ubuntu run "
                "`apt-get install python3-venv` first"
            )
        made_by.write_text(this_python)
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    install = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*install, "--constraint", ROOT / "constraints.txt", "--editable", target],
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
        check=False,
    )
    if done.returncode:
        sys.exit(
            "the packages could not be installed; the lines above say why. PyPI must be reachable "
            "the first time. If all else fails, delete .venv and try again"
        )
