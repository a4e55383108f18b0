"""`fairwarning scenario`, `fault` and `record`, as their users call them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwarning.scenarios import library
from fairwarning.testing import Server, server
from tests.cli.conftest import Program, said
from tests.cli.test_serve import PROGRAM, ask, serve_process
from tests.support.patience import HANG_S

ALONE = ("--serve", "--no-wait")
Json = dict[str, Any]


@pytest.fixture
def own(fairwarning: Server) -> Program:
    return Program(fairwarning.control_url)


def told(program: Program, *arguments: str, exit_code: int = 0) -> list[Json]:
    result = program(*arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("name", library.names())
def test_every_scenario_of_ours_plays_to_its_end_on_a_server_of_its_own(
    name: str, own: Program
) -> None:
    lines = told(own, "scenario", "run", name, *ALONE)
    assert lines[0]["kind"] == "ready"
    assert lines[-1] == {"kind": "end", "unmet": 0, "pending": []}
    assert any(each["kind"] == "met" for each in lines)


STARTER = [each for each in library.names() if each not in ("host-update", "spot-eviction")]


@pytest.mark.parametrize("name", STARTER)
def test_most_scenarios_play_on_the_starter_fleet(
    name: str, own: Program, fairwarning: Server
) -> None:
    for vm in ("web-0", "workers_0", "db"):
        fairwarning.vm(vm).document()
    assert told(own, "scenario", "run", name)[-1]["unmet"] == 0


def test_the_list_and_the_text_of_a_scenario(own: Program, tmp_path: Path) -> None:
    (listed,) = told(own, "scenario", "list")
    assert [each["name"] for each in listed["scenarios"]] == [*library.names()]
    mine = tmp_path / "mine.toml"
    mine.write_text(own("scenario", "show", "redeploy").stdout)
    assert told(own, "scenario", "run", str(mine), *ALONE)[-1]["unmet"] == 0
    assert "did you mean 'redeploy'" in said(own("scenario", "show", "redeplyo"))


def test_a_fleet_that_lacks_an_instance_says_what_to_do(own: Program) -> None:
    line = said(own("scenario", "run", "spot-eviction"))
    assert "spot-0" in line
    assert "--serve" in line
    assert "--target" in line


def test_a_fleet_of_the_scenarios_own_that_lacks_an_instance_is_told_before_anybody_is_waited_for(
    own: Program, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title = "x"\n[[step]]\nrestart = "web-9"\n')
    line = said(own("scenario", "run", str(mine), "--serve"))
    assert "web-9" in line
    assert "[fleet]" in line
    assert "--serve" not in line


def test_others_play(own: Program) -> None:
    for scenario, count in (("host-update", 1), ("spot-eviction", 2)):
        targets = ["--target", "db"] * count
        assert "give --target once for each" in said(own("scenario", "run", scenario, *targets))
    lines = told(own, "scenario", "run", "spot-eviction", "--target", "db")
    assert any("Preempt of db announced" in each["text"] for each in lines[:-1])


def test_a_mistake_has_its_line_and_a_refusal_its_step(own: Program, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title = "x"\n[[step]]\nrestrat = "web-0"\n')
    assert "`restart`" in said(own("scenario", "run", str(mine)), place=f"{mine}:3")
    mine.write_text('title = "x"\n[[step]]\nevict = "web-0"\n')
    result = own("scenario", "run", str(mine))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{mine}:2: evict web-0: ")


def test_an_expectation_that_is_not_met_is_exit_code_1(own: Program, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("""
title = "x"
[[step]]
schedule = { type = "Reboot", targets = "web-0" }
as = "r"
[[step]]
expect = { event = "r", phase = "completed" }
""")
    lines = told(own, "scenario", "run", str(mine), exit_code=1)
    assert lines[-1]["unmet"] == 1
    assert len(lines[-1]["pending"]) == 1
    result = own("scenario", "run", str(mine), *ALONE)
    assert "expected r to be completed, but it is scheduled" in result.stdout
    assert "still pending: Reboot of web-0" in result.stdout


def test_options_that_need_a_server_of_ones_own(own: Program) -> None:
    assert own("scenario", "run", "redeploy", "--no-wait").exit_code == 2


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    mine = tmp_path / "mine.toml"
    mine.write_text("""
title = "For ever"
[[step]]
fault = { kind = "status", instances = "web-1" }
[[step]]
schedule = { type = "Reboot", targets = "web-0", notice = "10d" }
[[step]]
after = "9d"
say = "Nobody lives to hear this."
""")
    command = [*PROGRAM, "scenario", "run", str(mine), "--serve", "--speed", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], kind: str, words: str = "") -> Json:
    assert process.stdout is not None
    for line in process.stdout:
        found: Json = json.loads(line)
        if found["kind"] == kind and words in found.get("text", ""):
            return found
    raise AssertionError(f"it ended before {kind}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_waits_for_a_handler_and_can_be_stopped(
    waiting: subprocess.Popen[str], number: signal.Signals
) -> None:
    ready = read_until(waiting, "ready")
    document = server_poll(ready["vms"]["web-0"])
    assert document == {"DocumentIncarnation": 1, "Events": []}
    read_until(waiting, "report", "Reboot of web-0 announced")
    waiting.send_signal(number)
    _, errors = waiting.communicate(timeout=HANG_S)
    assert waiting.returncode == 1
    assert "none of its faults is set any more" in errors
    assert "Reboot of web-0, scheduled" in errors


def server_poll(url: str) -> Json:
    base, _, name = url.rpartition("/vm/")
    return ask(base, name)


def test_a_fault_is_set_listed_and_cleared(own: Program, fairwarning: Server) -> None:
    options = ("--status", "500", "--count", "2", "--on", "any", "--probability", "0.5")
    (made,) = told(own, "fault", "set", "status", "--instance", "web-0", "--for", "10m", *options)
    assert (made["status"], made["count"], made["on"], made["probability"]) == (500, 2, "any", 0.5)
    listing = own("fault", "list")
    assert made["id"] in listing.stdout
    assert "status 500" in listing.stdout
    told(own, "fault", "clear", made["id"])
    told(own, "fault", "set", "slow", "--delay", "2s")
    assert "1 fault cleared" in own("fault", "clear").stdout
    assert "behaves" in own("fault", "list").stdout
    assert own("fault", "set", "explosion").exit_code == 2


@pytest.fixture
def outside() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_recording_survives_its_recorder_and_can_be_played(
    number: signal.Signals, outside: Server, own: Program, tmp_path: Path
) -> None:
    file = tmp_path / "recorded.jsonl"
    command = [*PROGRAM, "record", "--endpoint", outside.vm("web-0").url, "--output", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        outside.wait_until(lambda: polls(outside) >= 2)
        outside.schedule("Reboot", "web-0", notice="15m", duration="9s")
        outside.wait_until(lambda s: len(kept(file)) >= 3)
        outside.advance(minutes=15)
        outside.wait_until(lambda s: len(kept(file)) >= 4)
        process.send_signal(number)
        process.communicate(timeout=HANG_S)
        assert process.returncode == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    assert [each["kind"] for each in kept(file)][:4] == ["begin", *["document"] * 3]
    lines = told(own, "scenario", "run", str(file), *ALONE)
    assert any("Reboot of web-0 announced" in each.get("text", "") for each in lines)


def polls(running: Server) -> int:
    return sum(each.kind == "events" for each in running.requests())


def kept(file: Path) -> list[Json]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def test_a_recording_does_not_spoil_another_file(own: Program, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes")
    result = own("record", "--endpoint", "http://127.0.0.1:1", "--output", str(file))
    assert "is no recording" in said(result)
    assert file.read_text() == "my notes"


def test_a_recording_goes_on_after_a_line_that_was_cut_off(own: Program, tmp_path: Path) -> None:
    """As by a power failure. The half line is gone, and no other is spoilt."""
    file = tmp_path / "recorded.jsonl"
    for rest in ("", '{"kind":"docu'):
        with file.open("a") as half:
            half.write(rest)
        command = ["record", "--endpoint", "http://127.0.0.1:1", "--for", "0s"]
        assert own(*command, "--output", str(file)).exit_code == 0
    assert [each["kind"] for each in kept(file)].count("begin") == 2


def test_a_recorder_needs_nothing_of_the_server() -> None:
    code = (
        "import sys, fairwarning.cli.record, fairwarning.scenarios.recorder\n"
        "print([each for each in sys.modules if each.startswith(('fairwarning.engine', "
        "'fairwarning.operator_api', 'fairwarning.metadata', 'fairwarning.stores', 'uvloop'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_server_whose_clock_runs_says_so_and_scenarios_wait_for_it(tmp_path: Path) -> None:
    """A second of ours is an hour there, so a scenario of a few minutes may not be kept up with."""
    mine = tmp_path / "mine.toml"
    mine.write_text("""
title = "x"
[[step]]
schedule = { type = "Reboot", targets = "web-0", already-happened = true, lasts = "10m" }
as = "r"
[[step]]
after = "2h"
expect = { event = "r", phase = "completed", within = "30d" }
""")
    with serve_process("--store", "memory:", "--clock-speed", "3600", "--json") as process:
        assert process.stdout is not None
        program = Program(json.loads(process.stdout.readline())["control"])
        assert "virtual, 3600 times as fast" in program("clock", "show").stdout
        assert "leave --speed out" in said(
            program("scenario", "run", "hardware-failure", "--speed", "60")
        )
        *_, waited, end = told(program, "scenario", "run", str(mine))
        assert end["unmet"] == 0
        assert waited["since"] >= 2 * 3600
