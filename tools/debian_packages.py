"""The Debian packages that a suite needs: which are missing, and how they are installed."""

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where these programs are; an ordinary user's PATH often lacks the sbin folders."""
_POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a suite needs. A program may be there without its package."""

    programs: Mapping[str, str]
    """The packages of each program, separated by spaces."""
    modules: Sequence[str] = ()
    """Python modules, which the extra `test` brings along."""

    def missing(self) -> list[str]:
        """Returns what is missing, each line with what to do about it."""
        lines = []
        if absent := self._absent():
            lines.append(f"missing: {', '.join(absent)}; run: {' '.join(self._command())}")
        modules = [name for name in self.modules if importlib.util.find_spec(name) is None]
        if modules:
            lines.append(f"missing: {', '.join(modules)}; run: pip install 'fairwarning[test]'")
        return lines

    def install(self) -> None:
        """Installs the packages of the programs that are missing, as root."""
        if self._absent():
            subprocess.run(["apt-get", "update", "--quiet"], check=True)  # noqa: S607
            with services_kept_off():
                subprocess.run(self._command(), check=True)  # noqa: S603

    def _command(self) -> list[str]:
        packages = sorted({each for name in self._absent() for each in self.programs[name].split()})
        return ["apt-get", "install", "--yes", "--no-install-recommends", *packages]

    def _absent(self) -> list[str]:
        return [name for name in self.programs if shutil.which(name, path=SYSTEM_PATH) is None]


@contextmanager
def services_kept_off(policy: Path = _POLICY) -> Iterator[None]:
    """Keeps Debian from starting the services of packages that are installed in the block.

    The checks start these programs themselves. A policy that is there already stays.
    """
    try:
        with policy.open("x") as file:
            file.write("#!/bin/sh\nexit 101\n")
    except FileExistsError:
        yield
        return
    try:
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink()


def program(name: str) -> str:
    found = shutil.which(name, path=SYSTEM_PATH)
    assert found is not None, f"{name} was there a moment ago"
    return found
