"""Plays cases to a variant of the good handler in a thread of this process.

A process for each would take a second to import the server, and what a handler leaves undone
could be told only by waiting. Here a handler is given polls and no seconds: whatever it has not
done after so many it never does. Playing with real processes is left to a few other tests.
"""

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import Case
from fairwarning.handler_check.fleet import fleet, instances
from fairwarning.handler_check.model import Result, Verdict
from fairwarning.handler_check.observations import HandlerLog, Observations
from fairwarning.testing import Server
from tests.handler_check import variants
from tests.support.patience import HANG_S

POLLS_MAX = 12
"""More than any case waits for, and the good handler needs three at most."""
PAUSE_S = 0.002


class Stopped(BaseException):
    """Ends the thread; no handler catches it."""


class PausingServer(Server):
    """No handler is in the middle of a poll while time is moved: by that poll a scope that was
    left alone for a day would count as watched."""

    def __init__(self, **more: Any) -> None:
        self.turn = threading.Lock()
        """Held by the handler at work."""
        self.slept_s = 0.0
        """How long the handler would have slept so far. Its requests are timed with this."""
        super().__init__(seconds=lambda: self.slept_s, **more)

    def advance(self, *arguments: Any, **more: Any) -> None:
        with self.turn:
            super().advance(*arguments, **more)


class ThreadHandler:
    """As `check.handler.Handler`, without a process."""

    def __init__(self, module: Any, server: PausingServer, on_poll: Callable[[], None]) -> None:
        self._server = server
        self._on_poll = on_poll
        self._is_stopped = threading.Event()
        self._module = module
        module.time = SimpleNamespace(sleep=self._sleep)
        self.ending = "is running"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._server.turn:
            try:
                self._module.main()
            except Stopped:
                self.ending = "was stopped"
            except Exception as problem:
                self.ending = f"ended with {problem!r}"
        self._server.nudge()

    def _sleep(self, seconds: float) -> None:
        """Every round of a handler ends here."""
        self._server.slept_s += seconds
        self._server.turn.release()
        self._on_poll()
        is_stopped = self._is_stopped.wait(PAUSE_S)
        self._server.turn.acquire()
        if is_stopped:
            raise Stopped

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and self.ending == "is running"

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join(HANG_S)


class ObservationsByPolls(Observations):
    """Waits for polls instead of seconds."""

    def __init__(self, server: Server, vm: str, log: HandlerLog) -> None:
        super().__init__(server, vm, log, patience_s=HANG_S)
        self._rounds = 0

    def count(self) -> None:
        self._rounds += 1
        self._server.nudge()

    def _wait_until(self, condition: Callable[[], object], within_s: float | None = None) -> None:
        until = self._rounds + POLLS_MAX
        self._server.wait_until(lambda: condition() or self._rounds >= until, timeout=HANG_S)


def verdicts(
    variant: str, cases: Iterable[str], folder: Path, *, approves: bool = True, vm: str = ""
) -> dict[str, Verdict]:
    return {name: _play(variant, CASES[name], folder / name, approves, vm) for name in cases}


def _play(variant: str, case: Case, folder: Path, approves: bool, vm: str) -> Verdict:
    folder.mkdir(parents=True)
    log = folder / "log"
    vms = instances(case.instance(vm))
    with PausingServer(
        fleet=fleet(vms.vm, is_at_endpoint=False),
        start=datetime.now(UTC) + timedelta(hours=case.begins_h),
        newest_version=case.newest_version,
        unknown_version_status=case.unknown_version_status,
        holds_polls=False,
    ) as server:
        observed = ObservationsByPolls(server, vms.vm, HandlerLog(log))
        url = server.vm(vms.vm).url

        def start() -> None:
            if observed.handler is not None:
                observed.handler.stop()
            module = _handler(variant, case, vms.hostname, url, folder, log)
            observed.handler = ThreadHandler(module, server, observed.count)  # type: ignore[assignment]

        run = CaseRun(server, vms, observed, start, approves=approves)
        start()
        try:
            if run.must_start():
                case.play(run)
        finally:
            assert observed.handler is not None
            observed.handler.stop()
    points = tuple(run.points)
    return Result(case=case.name, title="", why="", points=points, took_s=0).verdict


def _handler(variant: str, case: Case, hostname: str, url: str, folder: Path, log: Path) -> Any:
    """The module with its fault, as the case's machine would have it."""
    module = variants.load()
    module.URL, module.STATE, module.LOG = url, folder / "drained.json", str(log)
    module.hostname = lambda: hostname
    with pytest.MonkeyPatch.context() as patch:
        for name, value in case.environment.items():
            patch.setenv(name, value)
        variants.named(variant)(module)
    return module
