"""Which programs an agent has running, in a file beside its state, for the one that comes after it.

systemd and containers end all of a service together. Elsewhere a command outlives an agent that is
killed, and what it does then would come after its own undo, or beside its second attempt.
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
    """A process that leads a group, told from any later one that gets its number."""

    leader: int
    started: int
    """In ticks since the boot."""
    boot: str

    def __str__(self) -> str:
        return f"{self.leader} {self.started} {self.boot}"


async def take_over(state: Path) -> None:
    """Ends what the last agent of this state left running. What this task starts from now on is
    written down for the next one."""
    running = Running(beside(state, SUFFIX))
    await running.end_left_behind()
    processes.noted.set(running.noted)


class Running:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._groups: list[Group] = []
        self._is_written = True

    async def end_left_behind(self) -> None:
        # We are of its group ourselves if it was a script that put us in the place of another.
        left = [each for each in _read(self._path)
                if identify(each.leader) == each and each.leader != os.getpgrp()]  # fmt: skip
        await asyncio.gather(*(_end(each.leader) for each in left))
        self._write()

    @contextmanager
    def noted(self, leader: int) -> Iterator[None]:
        """For as long as it runs."""
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
        """A full disk must not keep a VM from draining. Nothing is forced to disk: a crash of the
        machine ends the programs too."""
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
    """None if it has ended, or nothing can be said that would tell it from others: systemd may
    hide the boot, but ends what is left of a service by itself."""
    try:
        boot = _BOOT_ID.read_text().strip()
        # Its name comes before, in brackets, and may have anything in it.
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
    """What is damaged is left out: only a crash of the machine does that, and it ends them all."""
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
