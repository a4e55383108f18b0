"""A child is a process that the supervisor forks, watches, and starts again when it ends.

A child writes one line of JSON to its pipe: that it is ready, or why it cannot start. It ends by
itself when the supervisor is gone, because then the pipe of life is closed.
"""

import asyncio
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvloop

from fairwarning.common.systemd import leave_service

PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 5.0
"""The longest pause before a child that ends again and again is started anew."""
LASTED_S = 10.0
"""A child that lasted this long was well, so the next one is started without a pause."""

Tell = Callable[[dict[str, Any]], None]
Main = Callable[[Tell], Awaitable[None]]
"""What a child does. It gets a function with which it tells the supervisor something, once."""


class CannotStart(Exception):
    """The child has said why it cannot start. There is no point in trying again."""


@dataclass(eq=False)
class Child:
    """One process, and how to start it again."""

    name: str
    main: Main
    is_alone: bool = False
    """Whether the process that this one replaces must have ended before it starts."""
    old_pid: int = 0
    """The process that this one replaces and that has not been told to end, or 0."""
    waits_for: int = 0
    """The process that has been told to end before this one starts, or 0."""
    pid: int = 0
    pipe: int = -1
    """The end of the pipe from which the supervisor reads, or -1."""
    started_s: float = 0.0
    due_s: float = 0.0
    """When it is started, by the monotonic clock, if `pid` is 0. If it waits for another process,
    when that process is killed.
    """
    pause_s: float = 0.0
    is_ready: bool = False
    said: bytes = field(default=b"", repr=False)

    def start(self, life: tuple[int, int]) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(life[1])
            _run_and_exit(self, writing, life[0])
        os.close(writing)
        self.close_pipe()
        self.pid, self.pipe, self.said, self.is_ready = pid, reading, b"", False
        self.started_s = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """Return what the child has told, if that is complete. Call this if the pipe is readable.

        Raises CannotStart.
        """
        part = os.read(self.pipe, 65_536)
        if not part:
            self.close_pipe()
            return None
        self.said += part
        if not self.said.endswith(b"\n"):
            return None
        told: dict[str, Any] = json.loads(self.said)
        if "problem" in told:
            raise CannotStart(told["problem"])
        self.is_ready = True
        return told

    def ended(self) -> float:
        """Note that the process has ended. Return the pause in seconds before the next start."""
        now_s = time.monotonic()
        lasted = now_s - self.started_s >= LASTED_S
        self.pause_s = 0.0 if lasted else min(PAUSE_S_MAX, max(PAUSE_S_MIN, self.pause_s * 2))
        self.pid, self.is_ready, self.due_s = 0, False, now_s + self.pause_s
        return self.pause_s

    def close_pipe(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


def kill(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, which may have ended already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _run_and_exit(child: Child, pipe: int, life: int) -> None:
    """Run the child's main function in the forked process. This never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        leave_service()
        # Ctrl-C reaches all processes of a terminal. Only the supervisor acts on it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)

        def tell(content: dict[str, Any]) -> None:
            os.write(pipe, json.dumps(content).encode() + b"\n")

        uvloop.run(_with_life(child.main(tell), life))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # The clean-up of the supervisor must not run in its children.
        os._exit(code)


async def _with_life(main: Awaitable[None], life: int) -> None:
    """Run `main`, and stop this process as SIGTERM does when the supervisor is gone."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(life)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(life, stop)
    await main
