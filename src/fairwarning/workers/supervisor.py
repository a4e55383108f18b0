"""The supervisor starts the engine's process and the workers, and starts each again if it ends.

All sockets stay open in it. So a connection that comes while a process is being restarted waits in
the kernel's queue, and no poll fails. It never runs an event loop, because a process with a running
loop or with threads cannot be forked safely.

On SIGHUP the program is loaded anew, with the same sockets and the same process id (`reload.py`).
The new supervisor then replaces the old processes: first the engine, which must have given back its
work before another one takes it, and then each worker, when its successor answers polls.
"""

import logging
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from fairwarning.common.systemd import notify, notify_reloading, watchdog_s
from fairwarning.workers.children import CannotStart, Child, kill
from fairwarning.workers.reload import start_trial

STOP_S_MAX = 15.0
"""How long the processes may take to stop. The engine's process gives its work back meanwhile."""
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

_log = logging.getLogger(__name__)


class Supervisor:
    """Runs children until SIGTERM or SIGINT."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        on_ready: Callable[[Mapping[str, dict[str, Any]]], None],
        on_reload: Callable[[Mapping[str, int], Sequence[int]], NoReturn],
        life: tuple[int, int],
        retired: Sequence[int] = (),
    ) -> None:
        """`on_ready` is called once, with what each child has told, when all are ready.

        `on_reload` is called after SIGHUP, with the process id of each child, and of those that are
        ending. `life` is a pipe: the children end when nobody has it open for writing. `retired`
        are processes that are ending already.
        """
        self._children = list(children)
        self._on_ready = on_ready
        self._on_reload = on_reload
        self._retired = set(retired)
        self._told: dict[str, dict[str, Any]] = {}
        self._is_ready = False
        self._has_served = any(each.old_pid for each in children)
        """Whether all were ready once, also under the program before a reload."""
        self._trial: subprocess.Popen[str] | None = None
        """The process that tries whether the program can be loaded anew."""
        self._selector = selectors.DefaultSelector()
        self._life = life

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
            numbers = self._wait(signals, self._timeout_s())
            if watchdog_s() is not None:
                notify(WATCHDOG="1")
            if _ENDING.intersection(numbers):
                return
            self._bury()
            if signal.SIGHUP in numbers:
                self._try_reload()
            if self._may_reload():
                self._reload(signals)
                return

    def _try_reload(self) -> None:
        if self._is_ready and self._trial is None:
            notify_reloading()
            self._trial = start_trial()
        else:
            _log.warning("the last reload is not over yet, so this one is ignored")

    def _may_reload(self) -> bool:
        """Return whether a trial has ended well."""
        if self._trial is None or self._trial.poll() is None:
            return False
        trial, self._trial = self._trial, None
        said = trial.communicate()[1].strip()
        if trial.returncode:
            _log.error("the reload is given up, and the old program goes on: %s", said)
            notify(READY="1")
        return not trial.returncode

    def _reload(self, signals: socket.socket) -> None:
        """Load the program anew. Return only if a signal to end has just arrived."""
        # What arrives from now on is delivered to the new program.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        if not _ENDING.intersection(_drain(signals)):
            pids = {each.name: each.pid for each in self._children if each.pid}
            self._on_reload(pids, sorted(self._retired))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _start_due(self) -> None:
        now_s = time.monotonic()
        for child in self._children:
            if child.pid or child.due_s > now_s:
                continue
            if child.waits_for:
                kill(child.waits_for, signal.SIGKILL)
                child.due_s = now_s + STOP_S_MAX
            elif child.is_alone and child.old_pid:
                child.waits_for = self._retire(child, signal.SIGTERM)
                child.due_s = now_s + STOP_S_MAX
            else:
                child.start(self._life)
                self._selector.register(child.pipe, selectors.EVENT_READ, child)

    def _retire(self, child: Child, number: signal.Signals) -> int:
        """Tell the process that this child replaces to end, and return its id."""
        pid, child.old_pid = child.old_pid, 0
        kill(pid, number)
        self._retired.add(pid)
        return pid

    def _timeout_s(self) -> float | None:
        """Return the seconds until a child is to be started or systemd expects a sign of life. It
        is None if neither is.
        """
        now_s = time.monotonic()
        found = [max(0.0, each.due_s - now_s) for each in self._children if not each.pid]
        found += [ping_s] if (ping_s := watchdog_s()) is not None else []
        return min(found, default=None)

    def _wait(self, signals: socket.socket, timeout_s: float | None) -> bytes:
        """Wait for signals, or for something that a child tells. Return the signals' numbers."""
        numbers = b""
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is signals:
                numbers += signals.recv(4_096)
            else:
                self._hear(key.data)
        return numbers

    def _hear(self, child: Child) -> None:
        try:
            told = child.read()
        except CannotStart as problem:
            if not self._has_served:
                raise
            # The workers go on with what they have, and the reason may pass, such as an outage.
            _log.error("%s cannot start: %s", child.name, problem)
            self._forget_pipe(child)
            return
        if told is None and child.pipe >= 0:
            return
        self._forget_pipe(child)
        if told is None:
            return
        if child.old_pid:
            self._retire(child, signal.SIGQUIT)
        self._told[child.name] = told
        if not self._is_ready and len(self._told) == len(self._children):
            self._is_ready = self._has_served = True
            self._on_ready(self._told)

    def _forget_pipe(self, child: Child) -> None:
        if child.pipe >= 0:
            self._selector.unregister(child.pipe)
            child.close_pipe()

    def _bury(self) -> None:
        """Note which processes have ended."""
        self._retired = {pid for pid in self._retired if not _has_ended(pid)}
        for child in self._children:
            if child.waits_for and child.waits_for not in self._retired:
                child.waits_for, child.due_s = 0, 0.0
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._forget_pipe(child)
                pause_s = child.ended()
                when = "at once" if not pause_s else f"in {pause_s:g} s"
                how = _how(os.waitstatus_to_exitcode(status))
                _log.error("%s (process %d) %s; it is started again %s", child.name, pid, how, when)

    def _stop(self, signals: socket.socket) -> None:
        """End all children. The engine may still answer while the workers end."""
        notify(STOPPING="1")
        left = {each.pid for each in self._children if each.pid} | self._retired
        left |= {each.old_pid for each in self._children if each.old_pid}
        for pid in left:
            kill(pid, signal.SIGTERM)
        until_s = time.monotonic() + STOP_S_MAX
        while left := {pid for pid in left if not _has_ended(pid)}:
            if time.monotonic() > until_s:
                for pid in left:
                    kill(pid, signal.SIGKILL)
            # SIGCHLD ends this wait. A child may have ended just before it.
            self._selector.select(0.2)
            _drain(signals)
        for child in self._children:
            child.close_pipe()
        self._selector.close()

    @contextmanager
    def _hearing_signals(self) -> Iterator[socket.socket]:
        """Turn signals into bytes on a socket, so that one call waits for everything."""
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
        old = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        # They are blocked if the program has just been loaded anew.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
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


def _drain(signals: socket.socket) -> bytes:
    try:
        return signals.recv(4_096)
    except BlockingIOError:
        return b""


def _has_ended(pid: int) -> bool:
    """Return whether this process of ours has ended, and forget it then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _how(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
