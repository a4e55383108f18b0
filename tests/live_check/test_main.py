"""The command `python -m fairwarning.live_check` and what it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairwarning.live_check.records import (
    DRIVER_LOG,
    Document,
    Record,
    Recorder,
    Records,
    read_folder,
)
from tests.live_check.round_builder import good_round


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairwarning.live_check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def keep(records: Records, folder: Path) -> None:
    recorder = Recorder(folder)
    everything: list[Record] = [*records.scopes, *records.requests, *records.polls]
    everything += [Document(digest=name, text=text) for name, text in records.documents.items()]
    everything += [*records.approvals, *records.nodes, *records.clocks]
    everything += [*records.driver, *records.history]
    for record in everything:
        recorder.add(record)
    recorder.close()


def test_help_has_examples() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "mysql://x"], "PostgreSQL"),
        (["--nodes", "2"], "one server"),
        (["--for", "soon"], "like 30s"),
        (["--for", "0s"], "longer than nothing"),
        (["--folder", "."], "name a new one"),
        (["--check", "no-such-folder"], "does not exist"),
    ],
)
def test_bad_arguments_say_what_to_do(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_that_cannot_be_reached_is_one_clear_line(tmp_path: Path) -> None:
    # A server waits for a PostgreSQL that is away, but not for one that nobody can reach.
    url = "postgresql://nobody@127.0.0.1:99999/x"
    done = run("--store", url, "--folder", str(tmp_path / "kept"))
    assert done.returncode == 2
    assert "a server did not start" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_round_that_was_kept_can_be_checked_again(tmp_path: Path) -> None:
    keep(good_round().records, tmp_path / "round")
    done = run("--check", str(tmp_path / "round"))
    assert done.returncode == 0, done.stdout
    assert "every promise kept" in done.stdout


def test_a_broken_promise_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    make = good_round()
    make.order("DUE", ["web-0"], 3.7)
    keep(make.records, tmp_path / "round")
    done = run("--check", str(tmp_path / "round"))
    assert done.returncode == 1
    assert "BROKEN  4 once" in done.stdout
    assert "attempt 1 was ordered again" in done.stdout


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = good_round().records
    keep(records, tmp_path / "round")
    found = read_folder(tmp_path / "round")
    assert found.history == records.history
    assert found.driver == records.driver
    assert found.requests == records.requests
    assert found.polls == records.polls
    assert found.documents == records.documents


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / DRIVER_LOG).write_text('{"record": "driver"}\n')
    done = run("--check", str(tmp_path))
    assert done.returncode == 2
    assert "line 1" in done.stderr
