"""`fairwarning driver`: its examples work as programs, and what is wrong is said in one line."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_examples import examples
from tests.driver_check.good_services import impact_service, write_programs
from tests.drivers.packages import write_package

EXAMPLES = [each for each in examples() if each.split()[0] == "driver"]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairwarning", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_works(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_programs(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STATE", str(tmp_path / "state"))
    words = shlex.split(example)
    # One check shows that the command works; all of them have tests of their own.
    only = ["--only", "lower-attempt"] if "check" in words and "--only" not in words else []
    with impact_service(tmp_path) as url:
        (tmp_path / "hook.toml").write_text(f'url = "{url}"')
        done = run(tmp_path, *words, *only)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("xen", "no driver is called 'xen'; use one of simulated, command, webhook, libvirt"),
        ("command --set run=x", "name instances that may be lost"),
        ("command --instance a", "driver 'command' needs 'run'; add it"),
        ("simulated --set run", "--set 'run' has no value; write --set KEY=VALUE"),
        ("simulated --set run=x", "driver 'simulated' has no setting 'run'"),
        ("simulated --settings none.toml", "cannot read none.toml: No such file"),
        ("simulated --settings bad.toml", "bad.toml:1: this is not TOML"),
        ("simulated --settings list.toml", "list.toml: x must be a text, a whole number"),
        ("simulated --only twice", "there is no check twice; there are once, crash"),
        (
            "broken",
            "cannot be used: broken 1.0 cannot be imported (ValueError: no)",
        ),
    ],
)
def test_what_cannot_begin_is_said_in_one_line(words: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("x =")
    (tmp_path / "list.toml").write_text("x = [1]")
    write_package(tmp_path / "site", "broken", "raise ValueError('no')", broken="broken:X")
    done = run(tmp_path, "driver", "check", *words.split())
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_failed_check_is_shown_and_ends_with_one(tmp_path: Path) -> None:
    options = ("--set", "run=false", "--instance", "a", "--only", "once", "--only", "away")
    done = run(tmp_path, "driver", "check", "command", *options)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "failed    once           an attempt that is ordered twice acts once"
    )
    assert lines[1].startswith("left out  away  ")
    assert lines[2] == "command (fairwarning): 0 passed, 1 failed"


def test_a_driver_that_cannot_be_used_is_listed_with_the_reason(tmp_path: Path) -> None:
    write_package(tmp_path / "site", "broken", "raise ValueError('no')", broken="broken:X")
    done = run(tmp_path, "driver", "list", "--json")
    listed = {each["name"]: each for each in json.loads(done.stdout)["drivers"]}
    assert listed["broken"]["unusable"] == "broken 1.0 cannot be imported (ValueError: no)"
    assert listed["command"]["settings"][0] == {
        "name": "run",
        "kind": "command line",
        "required": True,
    }
