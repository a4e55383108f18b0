"""Runs one check of a suite, and prints a line for each thing that the check has shown."""

from collections.abc import Callable


def passes(name: str, check: Callable[[], list[str]]) -> bool:
    """Runs the check and prints its lines, or why it failed. Returns whether it passed."""
    try:
        lines = check()
    except AssertionError as failure:
        print(f"FAIL  {name:9}  {failure}", flush=True)
        return False
    for line in lines:
        print(f"pass  {name:9}  {line}", flush=True)
    return True
