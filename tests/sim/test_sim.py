"""The promises hold in many worlds, and those worlds are not dull."""

from collections import Counter

import pytest
from click.testing import CliRunner

from fairwarning.core.model import OperationKind
from fairwarning.sim.__main__ import main
from fairwarning.sim.run import run_seed

SEEDS_EACH = 120


@pytest.mark.parametrize("first", [0, 10_000])
def test_every_promise_is_kept(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_EACH):
        outcome = run_seed(seed)
        assert outcome.broken is None, f"python -m fairwarning.sim --seed {seed}: {outcome.broken}"
        happened += outcome.happened
    rare = [
        "AttemptFailed",
        "AttemptLost",
        "Cancelled",
        "Deactivated",
        "Failed",
        "InstanceDeleted",
        "InstancesUpgraded",
        "OperateAll granted",
        "RosterDeclared",
        "answer lost",
        "busy",
        "clock stepped ahead",
        "clock stepped back",
        "crash",
        "driver's answer lost",
        "impact failed",
        "stale report",
        *OperationKind,
    ]
    assert not [what for what in rare if not happened[what]]


@pytest.mark.parametrize("seeds", ["0", "-3"])
def test_no_seeds_are_no_proof(seeds: str) -> None:
    result = CliRunner().invoke(main, ["--seeds", seeds])
    assert result.exit_code == 2
    assert f"{seeds} is not in the range x>=1" in result.stderr
    assert "every promise kept" not in result.output


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = run_seed(7), run_seed(7)
    assert first.trace == second.trace
    assert first.happened == second.happened
