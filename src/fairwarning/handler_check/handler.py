"""Runs the user's handler as a process, and ends it with all its children.

It also measures how long the handler's processes waited for a core of a busy machine. The check
takes this time off its patience, so that a verdict does not depend on what else runs on the
machine. Only Linux tells it; elsewhere it is 0.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

OUTPUT_LINES_MAX = 20  # Enough for a traceback, and the report stays readable.
_OUTPUT_BYTES_MAX = 16 * 1024  # Twenty lines are seldom longer.
_TERMINATE_S = 1.0
"""How long a handler may take to end by itself before it is killed. Its case is over by then."""
_PROC = Path("/proc")
_NS = 1e9


class CannotStart(Exception):
    """The handler's command cannot be run."""


class Handler:
    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        on_end: Callable[[], None],
    ) -> None:
        """Start the process, which appends its output to the file `output`.

        `on_end` is called from another thread. Raises `CannotStart` if the command cannot run.
        """
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
    def ending(self) -> str:
        """How the process ended, such as `ended with exit code 1`, or `is running`."""
        code = self._process.returncode
        if code is None:
            return "is running"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def scheduling_delay_s(self) -> float:
        """Return how long its processes have waited for a core so far."""
        return scheduling_delay_s(self._process.pid)

    def stop(self) -> None:
        """End the process and its children. Children may run after the process has ended."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TERMINATE_S)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its children at once, as a power failure would."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, which)


def last_lines(output: Path) -> str:
    """Return the last lines that a handler printed, at most OUTPUT_LINES_MAX."""
    if not output.exists():
        return ""
    text = output.read_bytes()[-_OUTPUT_BYTES_MAX:].decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-OUTPUT_LINES_MAX:])


def _without_proxies() -> dict[str, str]:
    """Return the environment without variables for proxies, which many HTTP clients use."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}


def scheduling_delay_s(group: int) -> float:
    """Return for how many seconds the processes of this group, and we, could have run and did not.

    The delays of all threads are added. A process that has ended is left out, so the sum may fall.
    """
    return sum(_delay_s(pid) for pid in (os.getpid(), *_members(group)))


def _members(group: int) -> Iterator[int]:
    for each in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in parentheses, may contain spaces.
            fields = each.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                yield int(each.parent.name)


def _delay_s(pid: int) -> float:
    total = 0
    for each in _PROC.glob(f"{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(each.read_text().split()[1])
    return total / _NS
