"""The simulation can fail: each mutation breaks a promise, and the report names that promise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fairwarning
from tests.sim.mutations import MUTATIONS, Mutation

SEEDS = 400
PACKAGE = Path(fairwarning.__file__).parent
RUN = """
import sys
from fairwarning.sim.run import run_seed
for seed in range(int(sys.argv[1])):
    outcome = run_seed(seed)
    if outcome.broken:
        print(outcome.broken)
        sys.exit(1)
"""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name.replace(" ", "-"))
def test_the_simulation_notices(mutation: Mutation, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "fairwarning", ignore=shutil.ignore_patterns("__pycache__"))
    patched = tmp_path / "fairwarning" / mutation.file
    source = patched.read_text()
    assert source.count(mutation.old) == 1, "the patch no longer fits the code; bring it up to date"
    patched.write_text(source.replace(mutation.old, mutation.new))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(SEEDS)],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, f"{SEEDS} seeds passed in spite of it\n{done.stderr}"
    assert mutation.promise in done.stdout, done.stdout + done.stderr
