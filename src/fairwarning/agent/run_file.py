"""Keeps a small file beside the state, from which `agent status` reads how the agent is doing."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fairwarning.agent.state_file import Unreadable, beside, decode, encode, replace_file
from fairwarning.common.text_files import read_bytes

EVERY_S = 5.0
"""How often the time of the last answer is written, in seconds. The file is not forced to disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How the agent of a state file is doing, or how it was doing when it ended."""

    pid: int
    since: datetime
    name: str = ""
    url: str = ""
    answered: datetime | None = None
    """When the service last sent a document or said that nothing has changed."""
    trouble: str = ""
    """The error of the last poll. It is empty if there was none."""
    host_shutdown: str = ""
    """Whether a shutdown of the host waits for the drain. It is empty if that was not asked for."""
    not_approved: Mapping[str, str] = field(default_factory=dict)
    """Why each event is not approved, by the event's id."""


class RunFile:
    """Writes the run state of this process. A file that cannot be written is left alone: the agent
    has more important work.
    """

    def __init__(
        self,
        state: Path,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = beside(state, ".run")
        self._now, self._monotonic_s = now, monotonic_s
        self._written: RunState | None = None
        self._written_s = 0.0
        self._since = now()

    def write(
        self,
        *,
        name: str,
        url: str,
        is_answered: bool,
        trouble: str,
        reasons: Mapping[str, str],
        host_shutdown: str = "",
    ) -> None:
        """Write the run state if something has changed, or the last answer is `EVERY_S` newer."""
        before = self._written
        answered = self._now() if is_answered else None if before is None else before.answered
        state = RunState(
            pid=os.getpid(),
            since=self._since,
            name=name,
            url=url,
            answered=answered,
            trouble=trouble,
            host_shutdown=host_shutdown,
            not_approved=dict(reasons),
        )
        is_same = before is not None and _facts(before) == _facts(state)
        if is_same and self._monotonic_s() - self._written_s < EVERY_S:
            return
        with contextlib.suppress(OSError):
            replace_file(self._path, json.dumps(encode(state)).encode(), is_forced=False)
        self._written, self._written_s = state, self._monotonic_s()


def _facts(state: RunState) -> tuple[object, ...]:
    has_answered = state.answered is not None
    return (
        state.name, state.url, state.trouble, state.host_shutdown, state.not_approved, has_answered
    )  # fmt: skip


def read_run_state(state: Path) -> RunState | None:
    """Return the last run state of the agent with this state file, or None if there is none."""
    try:
        return decode(RunState, json.loads(read_bytes(beside(state, ".run"))))
    except (OSError, ValueError, RecursionError, Unreadable):
        return None


def is_running(state: Path) -> bool:
    """Return whether an agent holds the lock of this state file. Raises OSError without rights."""
    try:
        lock = os.open(beside(state, ".lock"), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
