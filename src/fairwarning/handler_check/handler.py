"""The user's handler as a process, with all its children."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

OUTPUT_LINES_MAX = 20
_OUTPUT_BYTES_MAX = 16 * 1024
_TERMINATE_S = 1.0


class CannotStart(Exception):
    """The command is none that can be run."""


class Handler:
    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        on_end: Callable[[], None],
    ) -> None:
        """`on_end` is called from another thread. Raises CannotStart."""
        with output.open("ab") as file:
            try:
                self._process = subprocess.Popen(  # noqa: S603  (to run it is what we are for)
                    command,
                    env={**_without_proxies(), **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            except OSError as problem:
                raise CannotStart(f"{command[0]}: {problem.strerror}") from problem
        threading.Thread(target=self._wait, args=(on_end,), daemon=True).start()

    def _wait(self, on_end: Callable[[], None]) -> None:
        self._process.wait()
        on_end()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def ended(self) -> str:
        """How, for people."""
        code = self._process.returncode
        if code is None:
            return "is running"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def stop(self) -> None:
        """Its children too, also if it has ended itself."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TERMINATE_S)
        self.kill()

    def kill(self) -> None:
        """At once, as a power failure does."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, which)


def end_of(output: Path) -> str:
    """The last lines of what a handler printed."""
    if not output.exists():
        return ""
    text = output.read_bytes()[-_OUTPUT_BYTES_MAX:].decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-OUTPUT_LINES_MAX:])


def _without_proxies() -> dict[str, str]:
    """No client of a metadata endpoint may use one, and many do by default."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}
