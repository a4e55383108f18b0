"""The supervisor starts the engine's process and the workers, and starts each again if it ends.

It opens all sockets and keeps them open. So a connection that comes while a process is being
restarted waits in the kernel's queue, and no poll fails. It never runs an event loop, because a
process with a running loop or with threads cannot be forked safely.
"""

import logging
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fairwarning.workers.children import CannotStart, Child

STOP_S_MAX = 15.0
"""How long the processes may take to stop. The engine's process gives its work back meanwhile."""

_log = logging.getLogger(__name__)
_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Supervisor:
    """Runs children until SIGTERM or SIGINT. On SIGHUP it calls `on_reload`."""

    def __init__(self, children: Sequence[Child], on_ready: Callable[[list[Any]], None]) -> None:
        """`on_ready` is called once, with what each child has told, when all are ready."""
        self._children = list(children)
        self._on_ready = on_ready
        self._told: dict[str, dict[str, Any]] = {}
        self._is_ready = False
        self._selector = selectors.DefaultSelector()
        self._life = os.pipe()

    def run(self) -> None:
        """Return after SIGTERM or SIGINT, when all children have ended. Raises CannotStart."""
        with self._hearing_signals() as signals:
            try:
                self._loop(signals)
            finally:
                self._stop(signals)

    def _loop(self, signals: socket.socket) -> None:
        while True:
            self._start_due()
            for number in self._wait(signals):
                if number in (signal.SIGTERM, signal.SIGINT):
                    return
            self._bury()

    def _start_due(self) -> None:
        now_s = time.monotonic()
        for child in self._children:
            if not child.pid and child.due_s <= now_s:
                child.start(self._life)
                self._selector.register(child.pipe, selectors.EVENT_READ, child)

    def _wait(self, signals: socket.socket) -> list[int]:
        """Wait for a signal, for something that a child tells, or for the next start."""
        due = [each.due_s for each in self._children if not each.pid]
        timeout = max(0.0, min(due) - time.monotonic()) if due else None
        numbers: list[int] = []
        for key, _ in self._selector.select(timeout):
            if key.fileobj is signals:
                numbers += signals.recv(4_096)
            else:
                self._hear(key.data)
        return numbers

    def _hear(self, child: Child) -> None:
        self._selector.unregister(child.pipe)
        told = child.read()
        if told is None:
            if child.pipe >= 0:
                self._selector.register(child.pipe, selectors.EVENT_READ, child)
            return
        child.close_pipe()
        self._told[child.name] = told
        if not self._is_ready and len(self._told) == len(self._children):
            self._is_ready = True
            self._on_ready([self._told[each.name] for each in self._children])

    def _bury(self) -> None:
        """Note which children have ended."""
        for child in self._children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            if child.pipe >= 0:
                with suppress(KeyError):
                    self._selector.unregister(child.pipe)
                child.close_pipe()
            pause_s = child.ended()
            code = os.waitstatus_to_exitcode(status)
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            when = "at once" if not pause_s else f"in {pause_s:g} s"
            _log.error("%s (process %d) %s; it is started again %s", child.name, pid, how, when)

    def _stop(self, signals: socket.socket) -> None:
        # Workers first: while they answer their last requests, the engine is still there.
        for child in reversed(self._children):
            child.kill(signal.SIGTERM)
        until_s = time.monotonic() + STOP_S_MAX
        while any(child.pid for child in self._children):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                for child in self._children:
                    child.kill(signal.SIGKILL)
            for child in self._children:
                if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
            self._selector.select(min(0.05, max(0.0, left_s)))
            with suppress(BlockingIOError):
                signals.recv(4_096)
        for child in self._children:
            child.close_pipe()
        for end in self._life:
            os.close(end)
        self._selector.close()

    @contextmanager
    def _hearing_signals(self) -> Iterator[socket.socket]:
        """Turn signals into bytes on a socket, so that one call waits for everything."""
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        before = {number: signal.signal(number, _ignore) for number in _WATCHED}
        old = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._selector.register(reading, selectors.EVENT_READ)
        try:
            yield reading
        finally:
            signal.set_wakeup_fd(old)
            for number, handler in before.items():
                signal.signal(number, handler)
            reading.close()
            writing.close()


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing. The number of the signal has been written to the wake-up socket."""


__all__ = ["CannotStart", "Supervisor"]
