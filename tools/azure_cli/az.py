"""Runs `az` and other clients with a fresh home, and prints how each command went."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.azure_cli.server import PROGRAM, Failed, Server

_WAIT_S_MAX = 600
"""A command that takes longer hangs. A busy computer may take minutes for one."""
_SHOWN_MAX = 76
_HEARD_MAX = 600


@dataclass
class Report:
    """Prints one line for each command: its result, how long it took, and its answer."""

    failures: int = 0
    rows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, command: str, seconds: float, seen: str, *, is_good: bool) -> None:
        shown = command if len(command) <= _SHOWN_MAX else f"{command[: _SHOWN_MAX - 1]}…"
        with self._lock:
            self.rows += 1
            self.failures += not is_good
            verdict = "pass" if is_good else "FAIL"
            print(f"{verdict:4}  {seconds:5.1f} s  {shown:{_SHOWN_MAX}}  {seen}", flush=True)


@dataclass(frozen=True, kw_only=True)
class Expected:
    code: int = 0
    is_refused: bool = False
    says: str = ""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.out) if self.out.strip() else None


class Client:
    """A program with a home of its own, so that it finds no other login or key."""

    def __init__(
        self, command: Sequence[str], shown: str, folder: Path, server: Server, report: Report
    ) -> None:
        self._command = command
        self._shown = shown
        self.server = server
        self.report = report
        self.folder = folder
        self.environment = {
            "PATH": f"{Path(command[0]).parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "FAIRWARNING_URL": server.control_url,
            "XDG_DATA_HOME": str(folder / "data"),
        }
        (folder / "home").mkdir()

    def set_up(self) -> None:
        """Sets the variables for the SDKs, as documented."""
        self._set_up("--sdk")

    def _set_up(self, option: str) -> None:
        """Runs our command that prints variables for a shell."""
        shown = ["fairwarning", "azure-setup", option]
        said = self._run(shown, [*PROGRAM, "azure-setup", option, "--json"], Expected())
        self.environment |= said.json["environment"]

    def __call__(self, *arguments: str) -> Any:
        """Runs a command that must succeed, and returns what it prints."""
        return self._own(arguments, Expected()).json

    def does(self, *arguments: str) -> None:
        """Runs a command that must succeed, whatever it prints."""
        self._own(arguments, Expected())

    def refused(self, *arguments: str, code: int = 1, says: str = "") -> None:
        """Runs a command that must fail with this exit code and one line that says why."""
        self._own(arguments, Expected(code=code, is_refused=True, says=says))

    def flowing(self, *arguments: str) -> Any:
        """Runs a command that must succeed, while time passes."""
        with self.server.time_flowing():
            return self(*arguments)

    @contextmanager
    def waiting(self, *arguments: str) -> Iterator[None]:
        """Runs a command that waits for what the block does; then time passes until it ends."""
        started = time.monotonic()
        process = subprocess.Popen(  # noqa: S603
            [*self._command, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield
            require(process.poll() is None, f"{self._words(arguments)} did not wait")
            with self.server.time_flowing():
                out, errors = process.communicate(timeout=_WAIT_S_MAX)
        finally:
            process.kill()
            process.wait()
        said = Said(process.returncode, out, errors)
        self._judge(self._words(arguments), time.monotonic() - started, said, Expected())

    def _words(self, arguments: Sequence[str]) -> str:
        return " ".join([self._shown, *arguments])

    def _own(self, arguments: Sequence[str], expected: Expected) -> Said:
        return self._run([self._words(arguments)], [*self._command, *arguments], expected)

    def _run(self, shown: list[str], command: list[str], expected: Expected) -> Said:
        started = time.monotonic()
        done = subprocess.run(  # noqa: S603
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WAIT_S_MAX,
            check=False,
        )
        said = Said(done.returncode, done.stdout, done.stderr)
        self._judge(" ".join(shown), time.monotonic() - started, said, expected)
        return said

    def _judge(self, shown: str, seconds: float, said: Said, expected: Expected) -> None:
        problem = problem_of(said, expected)
        seen = problem or (error_lines(said)[0] if expected.is_refused else "")
        self.report.add(shown, seconds, seen, is_good=not problem)
        if problem:
            raise Failed(shown)


class Az(Client):
    def __init__(self, program: Path, folder: Path, server: Server, report: Report) -> None:
        super().__init__([str(program)], "az", folder, server, report)
        self.environment |= {
            "AZURE_CONFIG_DIR": str(folder / "azure"),
            "AZURE_CORE_COLLECT_TELEMETRY": "0",
            "AZURE_CORE_NO_COLOR": "1",
        }

    @property
    def tenant(self) -> str:
        return str(self.server.azure()["tenant"])

    def id_of(self, rest: str) -> str:
        """Returns the ARM id of a resource in the group of the checks."""
        subscription = self.server.azure()["subscription"]
        return f"/subscriptions/{subscription}/resourceGroups/myResourceGroup/providers/{rest}"

    def set_up(self) -> None:
        """Configures az as documented: a command of ours calls az and prints shell lines."""
        self._set_up("--run")


def problem_of(said: Said, expected: Expected) -> str:
    """Returns what is wrong with the outcome; empty if nothing is. Pure."""
    heard = (said.errors.strip() or said.out.strip())[-_HEARD_MAX:]
    if said.code != expected.code:
        return f"exit code {said.code} instead of {expected.code}: {heard}"
    if "Traceback" in said.errors:
        return f"a traceback: {heard}"
    if expected.is_refused and len(error_lines(said)) != 1:
        return f"not one line of ERROR: {heard}"
    return "" if expected.says in said.errors else f"it does not say {expected.says!r}: {heard}"


def error_lines(said: Said) -> list[str]:
    return [each for each in said.errors.splitlines() if each.startswith("ERROR")]


def require(is_so: bool, otherwise: str) -> None:
    """Raises Failed if the condition does not hold."""
    if not is_so:
        raise Failed(otherwise)
