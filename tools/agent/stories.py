"""The agent is a handler like any other: it passes `fairwarning check` on every story."""

import json
import subprocess
import sys
from pathlib import Path

JOBS = 8
"""Stories mostly wait."""
_ROOT = Path(__file__).resolve().parents[2]


def check_stories() -> list[str]:
    handler = [sys.executable, "-m", "tools.agent.checked"]
    check = [sys.executable, "-m", "fairwarning", "check", "--json", "--jobs", str(JOBS), "--"]
    done = subprocess.run(  # noqa: S603
        [*check, *handler], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout, f"fairwarning check ended with code {done.returncode}: {done.stderr}"
    results = json.loads(done.stdout)["results"]
    failed = [each["story"] for each in results if each["verdict"] != "passed"]
    assert results, "there are no stories"
    assert not failed, f"{len(failed)} of {len(results)} stories failed: {', '.join(failed)}"
    assert done.returncode == 0, done.stderr
    return [f"fairwarning check: {len(results)} of {len(results)} stories passed"]
