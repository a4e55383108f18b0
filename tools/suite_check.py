"""Runs the checks of a suite, and prints a line for each thing that a check has shown."""

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping

from fairwarning.handler_check.namespace import NoNamespaces
from tools.debian_packages import Needs

_BAD_USAGE = 2


def run_suite(description: str, needs: Needs, checks: Mapping[str, str]) -> int:
    """Runs the checks that the command line names, or all of them. Returns the exit code.

    Each check is written `module:function`. It is imported only after the suite has found what it
    needs, because the module may need that too.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    parser.add_argument("only", nargs="*", help=f"{', '.join(checks)}; all without it")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in checks]:
        parser.error(f"no check is called {', '.join(unknown)}")
    if options.install:
        needs.install()
    for line in (lines := needs.missing()):
        print(line, file=sys.stderr)
    if lines:
        return _BAD_USAGE
    chosen = [name for name in checks if name in (options.only or checks)]
    try:
        failed = [name for name in chosen if not passes(name, _loaded(checks[name]))]
    except NoNamespaces as obstacle:
        print(obstacle, file=sys.stderr)
        return _BAD_USAGE
    return 1 if failed else 0


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


def _loaded(check: str) -> Callable[[], list[str]]:
    module, _, name = check.partition(":")
    found: Callable[[], list[str]] = getattr(importlib.import_module(module), name)
    return found
