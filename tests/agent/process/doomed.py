"""The agent with an end that is fixed: `python -m tests.agent.process.doomed WHEN N ARGUMENTS…`.

It kills itself as `kill -9` would, `before` or `after` the Nth time that it writes its state.
Between two of these only the outside changes, so these are all the points that can differ.
"""

import os
import signal
import sys
from typing import Any


def main() -> None:
    when, number = sys.argv[1], int(sys.argv[2])
    replace = os.replace
    count = 0

    def doomed(*arguments: Any, **options: Any) -> None:
        nonlocal count
        count += 1
        if count == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*arguments, **options)
        if count == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = doomed
    from fairwarning.cli.agent import agent

    agent(sys.argv[3:], prog_name="agent")


if __name__ == "__main__":
    main()
