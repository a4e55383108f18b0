"""Makes environments with clients of Azure, once for all checkouts.

They are large and have nothing to do with Fairwarning's own packages, so they live in the user's
cache folder, each under a name that changes with everything that it is made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

SIGN_OF_LIFE_S = 20


def ensure_environment(
    name: str,
    what: str,
    pins: Sequence[Path],
    install: Callable[[Path], int],
) -> Path:
    """Returns the folder of an environment that was made from the files `pins`.

    If there is none, makes it, and calls `install` with its folder; this returns an exit code.
    """
    folder = _folder(name, pins)
    ready = folder / ".ready"
    if not ready.exists():
        print(f"Installing {what} in {folder} (once) …", file=sys.stderr)
        _make(folder)
        if install(folder):
            shutil.rmtree(folder, ignore_errors=True)
            sys.exit(
                f"{what} could not be installed; the lines above say why. PyPI and the registry of "
                "npm must be reachable the first time, and 2 GB must be free. Then try again"
            )
        ready.touch()
    return folder


def pip_install(folder: Path, *arguments: str | Path) -> int:
    """Returns pip's exit code."""
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    return run_slowly([*pip, "--disable-pip-version-check", *arguments])


def run_slowly(command: Sequence[str | Path], folder: Path | None = None) -> int:
    """Returns the exit code; prints a line now and then, as installers are silent for minutes."""
    started = time.monotonic()
    environment = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        while True:
            try:
                return process.wait(SIGN_OF_LIFE_S)
            except subprocess.TimeoutExpired:
                print(f"  … {time.monotonic() - started:.0f} s", file=sys.stderr)


def _folder(name: str, pins: Sequence[Path]) -> Path:
    inputs = [*(each.read_bytes() for each in pins), sys.base_prefix.encode(), sys.version.encode()]
    fingerprint = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fairwarning" / f"{name}-{fingerprint}"


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
