"""`./test` knows its suites by name, and says so when a word is none of them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITES = (
    "samples", "azure", "agent", "postgres", "portal", "network", "upgrade", "alerts", "cluster",
    "libvirt", "systemd", "all",
)  # fmt: skip


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, ROOT / "test", *arguments], capture_output=True, text=True, check=False
    )


def test_help_has_a_line_for_each_suite() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in SUITES:
        assert any(line.split()[:1] == [name] for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("agnet",), "'agnet' is neither a suite nor a path"),
        (("tests/nowhere",), "'tests/nowhere' is neither a suite nor a path"),
        (("azure", "web"), "./test azure: too many arguments: web"),
    ],
)
def test_unknown_words_are_answered_with_the_suites(
    arguments: tuple[str, ...], reason: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert reason in done.stderr
    assert all(name in done.stderr for name in SUITES)


def test_ci_runs_all() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "./test all"
