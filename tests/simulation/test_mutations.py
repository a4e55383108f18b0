"""The simulation can fail: each mutation breaks a promise, and the report names that promise.

A mutation is applied to the source of one module while it is imported, in a process of its
own. That process is a fork of one that has loaded all other packages already. First come the
seeds that are known to show the mistake; if the code has changed so that they no longer do,
others are looked through.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairwarning
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.support.patience import HANG_S

SEEDS = 300
PACKAGE = Path(fairwarning.__file__).parent


class Forge:
    """A process that makes a child for each mutation and waits for its report."""

    def __init__(self, seeds: int = SEEDS) -> None:
        """`seeds` is how many are looked through if none is known."""
        self._seeds = seeds
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("mutated.py"))],
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def try_out(self, mutation: Mutation) -> dict[str, str | int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        others = [seed for seed in range(self._seeds) if seed not in mutation.seeds]
        order = {
            "file": str(PACKAGE / mutation.file),
            "old": mutation.old,
            "new": mutation.new,
            "promise": mutation.promise,
            "store": mutation.store,
            "limit_s": int(HANG_S),
            "seeds": [*mutation.seeds, *others],
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        report: dict[str, str | int] = json.loads(self._process.stdout.readline())
        return report

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    forge = Forge()
    yield forge
    forge.close()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name.replace(" ", "-"))
def test_the_simulation_notices(mutation: Mutation, forge: Forge) -> None:
    source = (PACKAGE / mutation.file).read_text()
    assert source.count(mutation.old) == 1, "the patch no longer fits the code; bring it up to date"
    report = forge.try_out(mutation)
    assert report["broken"], f"{SEEDS} seeds passed in spite of it"
    assert mutation.promise in str(report["broken"]), f"seed {report['seed']}: {report['broken']}"
