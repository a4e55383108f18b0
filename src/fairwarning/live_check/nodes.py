"""Starts, kills, stops and pauses the server processes."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fairwarning.live_check.records import NodeChange, now

READY_S_MAX = 120.0  # A loaded machine may start a server slowly.
STOP_S_MAX = 60.0  # Longer than the server's own limit for a graceful stop.
_GUARD = 'while read -r line; do pids=$line; done; [ -z "$pids" ] || kill -9 $pids'

Note = Callable[[NodeChange], None]


class CannotServe(Exception):
    """A server process did not start; the message says why."""


class Node:
    """One server of the check. After its process ends, it starts a new one.

    A server with workers is several processes of one group. They are killed and paused together.
    """

    def __init__(
        self,
        number: int,
        folder: Path,
        options: Sequence[str],
        environment: Mapping[str, str] | None = None,
        first_program: Path | None = None,
    ) -> None:
        """`folder` gets the log. `environment` is added to ours.

        `first_program` is a folder with another version of the package `fairwarning`. The first
        process runs it, and later ones run this version.
        """
        self.metadata_url = ""
        self.control_url = ""
        self.is_up = False
        self.busy = asyncio.Lock()
        """Locked while somebody kills, stops, pauses or starts the node."""
        self.log = folder / f"node-{number}.log"
        self._name = f"node-{number}"
        self._options = options
        self._more_environment = environment or {}
        self._first_program = first_program
        self._starts = 0
        self._looked_at = 0
        """How many bytes of the log `note_errors` has read."""
        self._process: asyncio.subprocess.Process | None = None

    @property
    def name(self) -> str:
        """Returns the name of the current process: `node-1.3` is the third process of node 1."""
        return f"{self._name}.{self._starts}"

    @property
    def pid(self) -> int | None:
        """Returns the process id. It is None while no process runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def has_died(self) -> bool:
        return self.is_up and self._process is not None and self._process.returncode is not None

    async def start(self, note: Note) -> None:
        """Starts a process and waits until it serves. Raises CannotServe if it does not."""
        self._starts += 1
        note(NodeChange(node=self.name, change="started", at=now()))
        command = [sys.executable, "-m", "fairwarning", "serve", *self._options]
        with self.log.open("ab") as log:
            # It gets a session of its own, so that Ctrl-C goes only to this process.
            self._process = process = await asyncio.create_subprocess_exec(
                *command,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=self._environment(),
            )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_S_MAX):
                line = await process.stdout.readline()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            raise CannotServe(f"a server was not ready within {READY_S_MAX:g} s") from None
        if not line:
            await process.wait()
            raise CannotServe(f"a server did not start: {self._last_line()}")
        ready = json.loads(line)
        self.metadata_url, self.control_url = ready["metadata"][0], ready["control"]
        self.is_up = True
        note(NodeChange(node=self.name, change="ready", at=now()))

    def _environment(self) -> dict[str, str]:
        """Returns the environment of a process that is about to start."""
        found = {**os.environ, **self._more_environment}
        if self._first_program is not None and self._starts <= 1:
            found["PYTHONPATH"] = str(self._first_program)
        return found

    async def kill(self, note: Note) -> None:
        await self._end(signal.SIGKILL, "killed", note)

    async def stop(self, note: Note) -> None:
        await self._end(signal.SIGTERM, "stopped", note)

    async def pause(self, seconds: float, note: Note) -> None:
        """Stops the process with SIGSTOP for some seconds, and then lets it continue."""
        note(NodeChange(node=self.name, change="paused", at=now()))
        self._signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._signal(signal.SIGCONT)
            note(NodeChange(node=self.name, change="continued", at=now()))

    def note_errors(self, note: Note) -> None:
        """Records the errors that were written to the log since the last call."""
        with self.log.open("rb") as file:
            file.seek(self._looked_at)
            lines = file.read().splitlines()
            self._looked_at = file.tell()
        for line in lines:
            if is_error(line):
                detail = line.decode(errors="replace")
                note(NodeChange(node=self._name, change="error", at=now(), detail=detail))

    def note_death(self, note: Note) -> None:
        """Records that the process ended by itself."""
        assert self._process is not None
        self.is_up = False
        detail = f"exit code {self._process.returncode}: {self._last_line()}"
        note(NodeChange(node=self.name, change="died", at=now(), detail=detail))

    async def _end(self, number: signal.Signals, change: str, note: Note) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self.is_up = False
        note(NodeChange(node=self.name, change=change, at=now()))
        self._signal(number)
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self._process.wait()
        except TimeoutError:
            note(NodeChange(node=self.name, change="killed", at=now(), detail="it did not stop"))
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """Sends SIGTERM to the first process, and any other signal to all processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                if number is signal.SIGTERM:
                    self._process.send_signal(number)
                else:
                    os.killpg(self._process.pid, number)

    def _last_line(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def is_error(line: bytes) -> bool:
    """Returns whether a whole line of a log reports an error."""
    if line.startswith(b"Traceback"):
        return True
    try:
        said = json.loads(line)
    except ValueError:
        return False
    # A request may wait for another server that is paused, and so delay the stop of this one.
    is_slow_stop = "timeout graceful shutdown exceeded" in said.get("message", "")
    return said.get("level") in ("error", "critical") and not is_slow_stop


class Guard:
    """A second process, which kills the servers if this process is killed."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, start_new_session=True
        )

    def tell(self) -> None:
        """Sends the process ids to the guard. Call it when a server has started or ended."""
        pids = (str(node.pid) for node in self._nodes if node.pid is not None)
        self._write(" ".join(pids))

    def dismiss(self) -> None:
        self._write("")
        self._process.communicate()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), line.encode() + b"\n")


def serve_options(store: str, lease_s: float, workers: int = 0) -> list[str]:
    return [
        *(["--workers", str(workers)] if workers else []),
        "--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--no-azure", "--empty",
        "--store", store, "--lease", f"{lease_s:.0f}s", "--log-format", "json", "--json",
    ]  # fmt: skip
