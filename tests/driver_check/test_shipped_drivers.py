"""The drivers that come with Fairwarning keep every rule; ./test libvirt checks `libvirt`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.driver_check.good_services import impact_service, write_programs
from tests.driver_check.program import failures, run_check


def passes(report: dict[str, Any], errors: str) -> None:
    assert report, errors
    assert failures(report) == {}
    assert {each["verdict"] for each in report["results"]} == {"passed"}


def test_simulated(tmp_path: Path) -> None:
    _, report, errors = run_check(tmp_path, "simulated")
    passes(report, errors)


def test_command_with_the_script_of_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_programs(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STATE", str(tmp_path / "state"))
    _, report, errors = run_check(
        tmp_path,
        *("command", "--set", "run=./impact", "--instance", "vm-1", "--instance", "vm-2"),
        *("--count", './count "$1"', "--away", "touch away", "--back", "rm away", "--gaps", "6"),
    )
    passes(report, errors)


def test_webhook(tmp_path: Path) -> None:
    read = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    (tmp_path / "count.py").write_text(read)
    with impact_service(tmp_path) as url:
        _, report, errors = run_check(
            tmp_path,
            *("webhook", "--set", f"url={url}/impacts", "--instance", "vm-1"),
            *("--count", f'{sys.executable} -S count.py "{url}/$1"'),
            *("--away", "touch away", "--back", "rm away", "--gaps", "6"),
        )
    passes(report, errors)
