"""The agent is a handler like any other: it passes `fairwarning check` in every case."""

import json
import subprocess
import sys
from pathlib import Path

JOBS = 8
"""More than there are cores: cases mostly wait."""
_ROOT = Path(__file__).resolve().parents[2]


def check_handler() -> list[str]:
    handler = [sys.executable, "-m", "tools.agent.checked"]
    check = [sys.executable, "-m", "fairwarning", "check", "--json", "--jobs", str(JOBS), "--"]
    done = subprocess.run(  # noqa: S603
        [*check, *handler], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout, f"fairwarning check ended with code {done.returncode}: {done.stderr}"
    results = json.loads(done.stdout)["results"]
    failed = [each["case"] for each in results if each["verdict"] != "passed"]
    assert results, "there are no cases"
    assert not failed, f"{len(failed)} of {len(results)} cases failed: {', '.join(failed)}"
    assert done.returncode == 0, done.stderr
    return [f"fairwarning check: {len(results)} of {len(results)} cases passed"]
