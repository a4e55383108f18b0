"""Runs the endpoint (`endpoint_program.py`) as a process, and gives it orders."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

from tests.support.patience import HANG_S
from tests.support.processes import running

ROOT = Path(__file__).resolve().parents[2]
OURS = (sys.executable, "-m", "tests.support.endpoint_program")
Fleet = Mapping[str, Mapping[str, Sequence[str]]]
"""Maps availability sets to their instances, and those to their addresses."""
_BEGUN = frozenset({"started", "completed"})


@contextmanager
def serving_endpoint(fleet: Fleet, address: str, serve: Sequence[str] = OURS) -> Iterator["Server"]:
    """Starts it, waits until it is ready, and ends it with the block."""
    command = [*serve, "--metadata", address, "--fleet", json.dumps(fleet)]
    with running(command, stdin=PIPE, stdout=PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(
                f"the server ended with code {process.wait(HANG_S)} before it was ready"
            )
        yield Server(process)


class Server:
    def __init__(self, process: Popen[str]) -> None:
        self._process = process

    def schedule(self, instance: str, event_id: str | None = None) -> str:
        """Announces a Reboot, under this id if one is given, and returns its id."""
        wanted = None if event_id is None else event_id.upper()
        return self._ask({"schedule": instance, "id": wanted})["id"]

    def wait_until_started(self, event_id: str, timeout_s: float = HANG_S) -> str:
        """Returns the event's phase once it has started, or when time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            phase = self._ask({"phase": event_id})["phase"]
            if phase in _BEGUN or time.monotonic() > deadline:
                return phase
            time.sleep(0.05)

    def _ask(self, order: Mapping[str, str | None]) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"the server ended while it was asked to {order}")
        found: dict[str, str] = json.loads(said)
        return found
