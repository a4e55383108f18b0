"""Runs one case in its own process, with its own network, server and handler.

`python -m fairwarning.handler_check.worker REQUEST` prints the result as one line of JSON. It
ends when its standard input is closed, so it ends with the process that started it.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from fairwarning.handler_check import namespace
from fairwarning.handler_check.all_cases import CASES, FIRST_POLL
from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import Case
from fairwarning.handler_check.fleet import Instances, fleet, instances
from fairwarning.handler_check.handler import CannotStart, Handler, last_lines
from fairwarning.handler_check.model import CaseRequest, Point, Result, Verdict
from fairwarning.handler_check.observations import HandlerLog, Observations
from fairwarning.testing import Server


def play(request: CaseRequest) -> Result:
    case = CASES.get(request.case, FIRST_POLL)
    vms = instances(case.instance(request.vm))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairwarning-check-") as folder:
        output = Path(folder, "output")
        if request.in_namespace:
            namespace.configure(vms.hostname)
        with _server(case, vms, request) as server:
            run = _play(case, vms, request, server, Path(folder), output)
        return Result(
            case=case.name,
            title=case.title,
            why=case.why,
            happened=tuple(run.happened),
            points=tuple(run.points),
            output=last_lines(output),
            crash=run.crash,
            took_s=round(time.monotonic() - began, 2),
        )


def _server(case: Case, vms: Instances, request: CaseRequest) -> Server:
    return Server(
        fleet=fleet(vms.vm, is_at_endpoint=request.in_namespace),
        start=datetime.now(UTC) + timedelta(hours=case.begins_h),
        newest_version=case.newest_version,
        unknown_version_status=case.unknown_version_status,
        # Azure has no long-polls; without them, a poll shows that the last response was read.
        holds_polls=False,
        also=[(namespace.ENDPOINT, namespace.PORT)] if request.in_namespace else (),
    )


def _play(
    case: Case,
    vms: Instances,
    request: CaseRequest,
    server: Server,
    folder: Path,
    output: Path,
) -> CaseRun:
    log = folder / "log"
    state = folder / "state"
    state.mkdir()
    observed = Observations(server, vms.vm, HandlerLog(log), request.patience_s)
    url = f"http://{namespace.ENDPOINT}" if request.in_namespace else server.vm(vms.vm).url
    command = [_fill(each, url, vms.vm) for each in request.command]
    environment = {
        "FAIRWARNING_METADATA_URL": url,
        "FAIRWARNING_CHECK_LOG": str(log),
        "FAIRWARNING_CHECK_STATE": str(state),
        **case.environment,
    }
    start = _starter(observed, lambda: Handler(command, environment, output, server.nudge))
    run = CaseRun(server, vms, observed, start, approves=request.approves)
    try:
        start()
        if run.must_start():
            case.play(run)
    except CannotStart as problem:
        run.points.append(
            Point(should="start", did=f"it cannot be run: {problem}", verdict=Verdict.FAILED)
        )
    finally:
        if observed.handler is not None:
            if not observed.handler.is_alive:
                run.crash = _crash(observed.handler.ending, output)
            observed.handler.stop()
    return run


def _crash(ending: str, output: Path) -> str:
    printed = last_lines(output).splitlines()
    return f"it {ending}: {printed[-1].strip()}" if printed else f"it {ending}"


def _starter(observed: Observations, make: Callable[[], Handler]) -> Callable[[], None]:
    def start() -> None:
        if observed.handler is not None:
            observed.handler.kill()
        observed.handler = make()

    return start


def _fill(word: str, url: str, vm: str) -> str:
    return word.replace("{url}", url).replace("{vm}", vm)


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _on_terminate(*_: object) -> None:
    # Ignore further signals: a second one would interrupt the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)


def main() -> None:
    signal.signal(signal.SIGTERM, _on_terminate)
    threading.Thread(target=_end_with_input, daemon=True).start()
    result = play(msgspec.json.decode(sys.argv[1], type=CaseRequest))
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
