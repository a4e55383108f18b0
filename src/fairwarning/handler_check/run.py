"""Runs a check. It tests the first poll, then all cases in parallel in their own processes."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from fairwarning.fleet_file.problems import FleetProblem
from fairwarning.handler_check.all_cases import CASES, FIRST_POLL
from fairwarning.handler_check.fleet import VM, fleet
from fairwarning.handler_check.model import CaseRequest, Point, Report, Result, Verdict
from fairwarning.handler_check.namespace import ENDPOINT, NoNamespaces, new_network
from fairwarning.testing.server_loop import read_fleet

BROKEN = "the check itself broke"
"""What the report says when a worker crashed. No handler is to blame for it."""
_STOP_S_MAX = 5.0
"""How long a worker may take to stop its server and its handler before it is killed."""
_CASE_PATIENCES_MAX = 60
"""A case waits for the handler at most this many times. If it takes longer, it is stopped."""
_CASE_S_MIN = 600.0
"""Extra time for a case, because processes start slowly on a busy system."""


class CannotCheck(Exception):
    """The handler could not be started, or never polled. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """The options that the user gave."""

    command: tuple[str, ...]
    cases: tuple[str, ...]
    patience_s: float
    jobs: int
    approves: bool
    namespace: bool | None
    """Whether to use a network namespace. None means to use one if this system allows it."""
    vm: str = ""
    """The instance that the handler runs on. Empty means the one that each case has."""


def check(options: CheckOptions, on_result: Callable[[Result], None]) -> Report:
    """Run all chosen cases. `on_result` gets each result when its case ends.

    Raises `CannotCheck` if the handler does not start or never polls, and `NoNamespaces` if a
    namespace is required and this system does not allow it.
    """
    began = time.monotonic()
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if shutil.which(options.command[0]) is None:
        raise CannotCheck(
            f"there is no program {options.command[0]!r}; give the command after `--`"
        )
    _refuse_name(options.vm)
    in_namespace = _has_namespace(options.namespace)
    pool = WorkerPool()
    try:
        _require_first_poll(pool, options, in_namespace)
        requests = [_request(options, name, in_namespace) for name in options.cases]
        results = pool.run_all(requests, options.jobs, on_result)
    finally:
        pool.stop()
    return Report(
        command=options.command,
        at=at,
        network=f"at {ENDPOINT}, in a network of its own" if in_namespace else "by its base URL",
        took_s=round(time.monotonic() - began, 1),
        results=tuple(results),
    )


def _refuse_name(vm: str) -> None:
    """Raise `CannotCheck` if no instance can have this name."""
    try:
        read_fleet(fleet(vm or VM, is_at_endpoint=False))
    except FleetProblem as problem:
        raise CannotCheck(f"no instance can be called {vm!r}: {problem}") from None


def _has_namespace(wanted: bool | None) -> bool:
    if wanted is False:
        return False
    try:
        new_network()
    except NoNamespaces:
        if wanted:
            raise
        return False
    return True


def _request(options: CheckOptions, case: str, in_namespace: bool) -> CaseRequest:
    return CaseRequest(
        case=case,
        command=options.command,
        patience_s=options.patience_s,
        approves=options.approves,
        in_namespace=in_namespace,
        vm=options.vm,
    )


class WorkerPool:
    """Runs cases in parallel, each in its own process. `stop` ends all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_over = False

    def run(self, request: CaseRequest) -> Result:
        """Run one case to its end or its time limit. A worker that breaks gives a failed result."""
        began = time.monotonic()
        limit_s = _CASE_PATIENCES_MAX * request.patience_s + _CASE_S_MIN
        # The worker ends when its input is closed, so it cannot outlive this process.
        read_end, write_end = os.pipe()
        try:
            process = self._start(request, read_end)
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            _stop(process)
            output, errors = b"", b"it came to no end"
        finally:
            os.close(write_end)
            os.close(read_end)
        with self._lock:
            self._running.discard(process)
        try:
            return msgspec.json.decode(output, type=Result)
        except msgspec.DecodeError:
            text = errors.decode("utf-8", "replace").strip().splitlines()
            return _broken(request, text[-1] if text else "", time.monotonic() - began)

    def run_all(
        self, requests: Sequence[CaseRequest], jobs: int, on_result: Callable[[Result], None]
    ) -> list[Result]:
        """Return the results in the order of `requests`. `on_result` gets each when it is ready."""
        with self._threads(jobs) as threads:
            running: dict[Future[Result], int] = {
                threads.submit(self.run, each): number for number, each in enumerate(requests)
            }
            results: dict[int, Result] = {}
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    results[running.pop(each)] = each.result()
                    on_result(each.result())
            return [results[number] for number in sorted(results)]

    def stop(self) -> None:
        """End every worker process and its handler. No worker can start afterwards."""
        with self._lock:
            self._is_over = True
            running = [*self._running]
        for process in running:
            process.terminate()
        for process in running:
            _stop(process)

    @contextlib.contextmanager
    def _threads(self, jobs: int) -> Iterator[ThreadPoolExecutor]:
        threads = ThreadPoolExecutor(jobs)
        try:
            yield threads
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            self.stop()
            raise
        finally:
            threads.shutdown()

    def _start(self, request: CaseRequest, stdin: int) -> "subprocess.Popen[bytes]":
        prefix = new_network() if request.in_namespace else ()
        argument = msgspec.json.encode(request).decode()
        with self._lock:
            if self._is_over:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603
                [*prefix, sys.executable, "-m", "fairwarning.handler_check.worker", argument],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
            return process


def _require_first_poll(pool: WorkerPool, options: CheckOptions, in_namespace: bool) -> None:
    """Raise `CannotCheck` if the handler never polls, because then all cases would fail."""
    result = pool.run(_request(options, "", in_namespace))
    if result.verdict is not Verdict.FAILED:
        return
    point = result.points[0]
    output = f"\n{_indented(result.output)}" if result.output else ""
    where = (
        f"It finds the endpoint at http://{ENDPOINT} or in FAIRWARNING_METADATA_URL; nothing else "
        "can be reached from there, unless you give --no-namespace"
        if in_namespace
        else "It must use the URL in FAIRWARNING_METADATA_URL, or in the place of {url} in its "
        f"command, instead of http://{ENDPOINT}"
    )
    raise CannotCheck(f"the handler should {point.should}, and {point.did}. {where}.{output}")


def _indented(text: str) -> str:
    return "\n".join(f"  {each}" for each in text.splitlines())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_S_MAX)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _broken(request: CaseRequest, error: str, took_s: float) -> Result:
    """Return the failed result of a worker that crashed. It says that the check is at fault."""
    case = CASES.get(request.case, FIRST_POLL)
    did = f"{BROKEN}: {error}; this is a bug of Fairwarning or of this machine"
    return Result(
        case=case.name,
        title=case.title,
        why=case.why,
        points=(Point(should="be judged", did=did, verdict=Verdict.FAILED),),
        took_s=round(took_s, 2),
    )
