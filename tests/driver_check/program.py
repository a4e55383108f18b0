"""Runs `fairwarning driver check` as its author would: as a program, with a plug-in installed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.drivers.packages import write_package

EXAMPLE = Path(__file__).parents[2] / "examples/drivers/processes.py"
INSTANCE = """
import os, signal, sys
from pathlib import Path
me = Path(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
me.with_suffix('.count').touch()
me.with_suffix('.new').write_text(str(os.getpid()))
me.with_suffix('.new').rename(me.with_suffix('.pid'))
print(flush=True)
while True:
    signal.sigwait([signal.SIGCONT])
    with me.with_suffix('.count').open('a') as file:
        file.write('x')
"""
"""An instance that counts how often it went on after it was frozen."""
COUNT = 'wc -c < "run/$1.count"'


def run_check(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Returns the exit code, the report, and what was printed on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "fairwarning", "driver", "check", *arguments, "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def failures(report: dict[str, Any]) -> dict[str, str]:
    return {each["check"]: each["why"] for each in report["results"] if each["verdict"] == "failed"}


@contextmanager
def instances(folder: Path, *names: str) -> Iterator[None]:
    (folder / "run").mkdir()
    started = []
    try:
        for name in names:
            command = [sys.executable, "-S", "-c", INSTANCE, str(folder / "run" / name)]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        for each in started:
            assert each.stdout is not None
            assert each.stdout.readline() == b"\n"
        yield
    finally:
        for each in started:
            each.send_signal(signal.SIGKILL)
            each.communicate()


def check_processes(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    """Checks a driver of processes that has this text, on two instances."""
    write_package(folder / "site", "processes", text, processes="processes:Processes")
    with instances(folder, "a", "b"):
        code, report, errors = run_check(
            folder,
            "processes",
            *("--set", "folder=run", "--instance", "a", "--instance", "b", "--count", COUNT),
            *("--away", "mv run gone", "--back", "mv gone run"),
            *arguments,
        )
    assert report, errors
    assert code == (1 if failures(report) else 0)
    assert report["good"] is (code == 0)
    return report
