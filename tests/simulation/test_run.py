"""The promises hold in many worlds, on every kind of store, and those worlds are not dull."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from click.testing import CliRunner

from fairwarning.core.model import OperationKind
from fairwarning.simulation.__main__ import main
from fairwarning.simulation.run import run_seed
from fairwarning.simulation.stores import StorePlace

SEEDS_EACH = 100
REAL_SEEDS = 6
RARE = [
    "AttemptFailed",
    "AttemptLost",
    "Cancelled",
    "Deactivated",
    "Failed",
    "InstanceDeleted",
    "InstancesUpgraded",
    "OperateAll granted",
    "RosterDeclared",
    "answer held",
    "answer lost",
    "busy",
    "caller left",
    "clock stepped ahead",
    "clock stepped back",
    "committed together",
    "crash",
    "driver's answer lost",
    "impact failed",
    "poll 200",
    "poll 304",
    "stale report",
    "start failed",
    "stop",
    "store stepped back",
    "undone together",
    "undone, and each again alone",
    *OperationKind,
    *(
        f"{call} failed"
        for call in ("due", "journal", "keep", "note_seen", "read", "records", "scopes")
    ),
]


@pytest.mark.parametrize("first", [0, 10_000])
def test_every_promise_is_kept(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_EACH):
        outcome = run_seed(seed)
        assert outcome.broken is None, (
            f"python -m fairwarning.simulation --seed {seed}: {outcome.broken}"
        )
        happened += outcome.happened
    assert not [what for what in RARE if not happened[what]]


def test_every_promise_is_kept_on_sqlite() -> None:
    _run_some(StorePlace("sqlite"))


def test_every_promise_is_kept_on_postgresql(postgres_dsn: str) -> None:
    _run_some(StorePlace(postgres_dsn))


def _run_some(place: StorePlace) -> None:
    happened: Counter[str] = Counter()
    for seed in range(REAL_SEEDS):
        outcome = run_seed(seed, place)
        assert outcome.broken is None, f"seed {seed}: {outcome.broken}"
        happened += outcome.happened
    assert not [what for what in ("Completed", "crash", "answer held") if not happened[what]]


@pytest.mark.parametrize("seeds", ["0", "-3"])
def test_no_seeds_are_no_proof(seeds: str) -> None:
    result = CliRunner().invoke(main, ["--seeds", seeds])
    assert result.exit_code == 2
    assert f"{seeds} is not in the range x>=1" in result.stderr
    assert "every promise kept" not in result.output


def test_an_unknown_store_is_named() -> None:
    result = CliRunner().invoke(main, ["--store", "mysql"])
    assert result.exit_code == 2
    assert "'mysql' is no kind of store" in result.stderr


TELL = """
import re
from fairwarning.simulation.run import run_seed
for seed in range(15):
    outcome = run_seed(seed)
    print(seed, sorted(outcome.happened.items()))
    print(re.sub(r"frozenset\\(.*?\\)", "", "\\n".join(map(str, outcome.trace))))
"""


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    """Nothing depends on the order of a set, nor on where an object lies in memory."""
    stories = {
        subprocess.run(
            [sys.executable, "-c", TELL],
            env={**os.environ, "PYTHONHASHSEED": number},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(stories) == 1
