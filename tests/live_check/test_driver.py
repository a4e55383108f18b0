"""The driver's program: it does a key once, tells the truth, and logs all that it is asked."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairwarning.live_check import driver
from fairwarning.live_check.records import DRIVER_LOG, DriverCall, read_lines

PROGRAM = [sys.executable, "-I", "-S", str(Path(driver.__file__))]


class Rig:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "keys").mkdir()

    def ask(
        self, action: str, attempt: int = 1, *, seconds: float = 0.01, failures: int = 0
    ) -> subprocess.CompletedProcess[str]:
        with self.start(action, attempt, seconds=seconds, failures=failures) as process:
            out, err = process.communicate(_order(attempt))
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(
        self, action: str, attempt: int = 1, *, seconds: float = 0.01, failures: int = 0
    ) -> subprocess.Popen[str]:
        command = [*PROGRAM, str(self._folder), str(seconds), "60", str(failures), action]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def wait_for(self, what: str) -> None:
        while what not in self.log():
            time.sleep(0.01)

    def log(self) -> list[str]:
        file = self._folder / DRIVER_LOG
        return [each.what for each in self.lines()] if file.exists() else []

    def lines(self) -> list[DriverCall]:
        found = read_lines(self._folder / DRIVER_LOG)
        return [each for each in found if isinstance(each, DriverCall)]


def _order(attempt: int) -> str:
    instance: dict[str, Any] = {"name": "web-0", "handle": "vm-17", "updateDomain": 2}
    order = {"key": "K", "attempt": attempt, "type": "Reboot", "operation": None, "scope": "s"}
    return json.dumps({**order, "instances": [instance]})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_it_does_what_it_is_asked_and_logs_both(rig: Rig) -> None:
    assert rig.ask("do").returncode == 0
    assert rig.log() == ["do", "begin", "end"]
    asked, begun, ended = rig.lines()
    assert asked.at.mono_s <= begun.at.mono_s <= ended.at.mono_s
    assert [(each.name, each.handle, each.domain) for each in asked.instances] == [
        ("web-0", "vm-17", 2)
    ]
    assert ended.outcome == "done"


def test_it_finds_what_became_of_a_key(rig: Rig) -> None:
    assert rig.ask("find").stdout == "unknown\n"
    rig.ask("do")
    assert rig.ask("find").stdout == "done\n"


def test_it_does_a_key_once_and_logs_that_it_was_asked_again(rig: Rig) -> None:
    rig.ask("do")
    assert rig.ask("do", 2).returncode == 0
    assert rig.log() == ["do", "begin", "end", "do", "join"]


def test_while_it_runs_find_says_so_and_a_second_order_joins(rig: Rig) -> None:
    assert rig.ask("find").stdout == "unknown\n"
    with rig.start("do", seconds=1) as first:
        assert first.stdin is not None
        first.stdin.write(_order(1))
        first.stdin.close()
        rig.wait_for("begin")
        assert rig.ask("find", 2).stdout == "running\n"
        assert rig.ask("do", 2).returncode == 0
        first.wait()
    assert rig.log() == ["find", "do", "begin", "find", "do", "join", "end"]


def test_a_lower_attempt_than_one_that_only_asked_is_refused(rig: Rig) -> None:
    rig.ask("find", 2)
    refused = rig.ask("do", 1)
    assert refused.returncode == 1
    assert "attempt 2 was seen" in refused.stderr
    assert rig.log() == ["find", "do", "refuse"]
    assert rig.ask("do", 2).returncode == 0


def test_who_is_told_to_end_has_failed_and_may_be_done_again(rig: Rig) -> None:
    with rig.start("do", seconds=600) as process:
        assert process.stdin is not None
        process.stdin.write(_order(1))
        process.stdin.close()
        rig.wait_for("begin")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 1
    assert rig.lines()[-1].outcome == "interrupted"
    assert rig.ask("find", 2).stdout == "failed\n"
    assert rig.ask("do", 2).returncode == 0


def test_one_that_was_killed_is_not_running(rig: Rig) -> None:
    with rig.start("do", seconds=600) as process:
        assert process.stdin is not None
        process.stdin.write(_order(1))
        process.stdin.close()
        rig.wait_for("begin")
        process.kill()
    assert rig.ask("find", 2).stdout == "failed\n"


def test_some_attempts_fail(rig: Rig) -> None:
    assert rig.ask("do", failures=1).returncode == 1
    assert rig.lines()[-1].outcome == "failed"
    assert rig.ask("do", 2).returncode == 0
