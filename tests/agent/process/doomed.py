"""Agents with an end that is fixed, each a process of its own: `python -m …doomed`.

A line of JSON on standard input starts one, and the answer is its exit code, -9 if it was
killed. It kills itself as `kill -9` would, `before` or `after` the Nth time that it writes its
state: between two of these only the outside changes, so these are all the points that can
differ. They are forked from here because importing takes ten times as long as the rest.
"""

import json
import os
import signal
import sys
from typing import Any

from fairwarning.agent import program
from fairwarning.agent.actions import registry
from fairwarning.agent.cli.main import agent
from fairwarning.agent.leftover_processes import SUFFIX

IMPORTED = (program, registry)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(order)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(order: dict[str, Any]) -> None:
    _doom(order["when"], order["number"])
    os.dup2(2, 1)
    try:
        agent(order["arguments"], prog_name="agent")
    except SystemExit as end:
        os._exit(int(end.code or 0))
    finally:
        os._exit(70)


def _doom(when: str, number: int) -> None:
    replace = os.replace
    count = 0

    def doomed(*arguments: Any, **options: Any) -> None:
        nonlocal count
        if str(arguments[1]).endswith(SUFFIX):
            # What is running is not its state; `test_orphans` has that.
            replace(*arguments, **options)
            return
        count += 1
        if count == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*arguments, **options)
        if count == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = doomed


if __name__ == "__main__":
    main()
