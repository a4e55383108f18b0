"""Ends commands that still run after their agent was killed.

An agent lists its running programs in a file beside its state, and the next agent reads the file.
systemd and containers end all processes of a service together. Without them, a command goes on
after its agent was killed. It could then act after its own undo, or together with its retry.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairwarning.agent import logs
from fairwarning.agent.actions import processes
from fairwarning.agent.state_file import beside, replace_file
from fairwarning.common.process_group import end_of_others

SUFFIX = ".running"
_NUMBER = re.compile(r"[0-9]{1,19}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group, which is named after its first process. `started` and `boot` distinguish
    this process from a later one with the same process id.
    """

    leader: int
    started: int
    """The start time in ticks since the boot."""
    boot: str

    def __str__(self) -> str:
        return f"{self.leader} {self.started} {self.boot}"


async def take_over(state: Path) -> None:
    """End the programs that the last agent with this state file left running.

    From then on, the programs that this task starts are listed for the next agent.
    """
    running = RunningGroups(beside(state, SUFFIX))
    await running.end_orphans()
    processes.noted.set(running.noted)


class RunningGroups:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._groups: list[Group] = []
        self._is_written = True

    async def end_orphans(self) -> None:
        # This process itself is in that group if a script used `exec` to become the agent.
        left = [each for each in _read(self._path)
                if identify(each.leader) == each and each.leader != os.getpgrp()]  # fmt: skip
        await asyncio.gather(*(_end(each.leader) for each in left))
        self._write()

    @contextmanager
    def noted(self, leader: int) -> Iterator[None]:
        """List the group of this first process in the file while the `with` block runs."""
        group = identify(leader)
        if group is None:
            yield
            return
        self._groups.append(group)
        self._write()
        try:
            yield
        finally:
            self._groups.remove(group)
            self._write()

    def _write(self) -> None:
        """Write the file. A failure is only logged, so that a full disk does not stop a drain.

        No fsync is needed, because a crash of the VM also ends the programs.
        """
        try:
            if not self._groups:
                self._path.unlink(missing_ok=True)
                return
            lines = "".join(f"{each}\n" for each in self._groups)
            replace_file(self._path, lines.encode(), is_forced=False)
        except OSError as problem:
            if self._is_written:
                said = "%s cannot be written: %s; if this agent is killed, its commands may go on"
                _log.warning(said, self._path, problem.strerror)
            self._is_written = False
        else:
            self._is_written = True


def identify(leader: int) -> Group | None:
    """Return the group of this leader, or None if it has ended or cannot be identified.

    systemd may hide the boot id, but then it ends the processes of a service itself.
    """
    try:
        boot = _BOOT_ID.read_text().strip()
        # The name of the process comes before, in brackets, and may contain any characters.
        fields = Path(f"/proc/{leader}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state in (b"Z", b"X") else Group(leader=leader, started=int(started), boot=boot)


async def _end(leader: int) -> None:
    logs.warn(f"an agent was killed and its command goes on (process {leader}); ending it first")
    if not await end_of_others(leader, processes.GRACE_S):
        logs.warn(f"process {leader} cannot be ended; look after it yourself")


def _read(path: Path) -> list[Group]:
    """Return the groups in the file. Damaged lines are ignored: only a crash of the VM leaves them,
    and it also ends the programs.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = [line.split() for line in lines]
    return [
        Group(leader=int(words[0]), started=int(words[1]), boot=words[2])
        for words in found
        if len(words) == 3 and all(_NUMBER.fullmatch(each) for each in words[:2])
    ]
