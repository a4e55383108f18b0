"""Makes an environment with Azure's own command line, once for all checkouts.

It is large and has nothing to do with Fairwarning's own packages, so it lives in the user's
cache folder, under a name that changes with everything that it is made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "tools" / "azure_cli" / "constraints.txt"
SIGN_OF_LIFE_S = 20


def ensure_az() -> Path:
    """Returns the pinned `az`, and installs it if need be."""
    folder = _folder()
    az = folder / "bin" / "az"
    ready = folder / ".ready"
    if not (az.exists() and ready.exists()):
        print(
            f"Installing {_pinned('azure-cli')} in {folder} (once, about 730 MB, a few minutes) …",
            file=sys.stderr,
        )
        _make(folder)
        ready.touch()
    return az


def _folder() -> Path:
    inputs = [PINS.read_bytes(), sys.base_prefix.encode(), sys.version.encode()]
    fingerprint = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fairwarning" / f"azure-cli-{fingerprint}"


def _pinned(package: str) -> str:
    return next(line for line in PINS.read_text().split() if line.startswith(f"{package}=="))


def _make(folder: Path) -> None:
    try:
        # What an interrupted installation left behind is cleared away too.
        venv.create(folder, with_pip=True, clear=True, symlinks=True)
    except (subprocess.CalledProcessError, ImportError):
        sys.exit(
            "this Python cannot make virtual environments; on Debian or Ubuntu run "
            "`apt-get install python3-venv` first"
        )
    except OSError as problem:
        sys.exit(f"cannot write to {folder} ({problem.strerror}); set XDG_CACHE_HOME elsewhere")
    if _install(folder):
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit(
            "Azure's command line could not be installed; the lines above say why. PyPI must be "
            "reachable the first time, and 2 GB must be free. Then try again"
        )


def _install(folder: Path) -> int:
    """Returns pip's exit code; prints a line now and then, as pip is silent for minutes."""
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    started = time.monotonic()
    with subprocess.Popen(
        [*install, "--disable-pip-version-check", "--constraint", PINS, _pinned("azure-cli")],
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
    ) as pip:
        while True:
            try:
                return pip.wait(SIGN_OF_LIFE_S)
            except subprocess.TimeoutExpired:
                print(f"  … {time.monotonic() - started:.0f} s", file=sys.stderr)
