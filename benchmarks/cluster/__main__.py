"""Runs the benchmarks of a cluster and prints one table: `python -m benchmarks.cluster`.

`--only visible approvals workers planning failover` chooses parts, `--quick` shows that they work.
"""

import argparse
from collections.abc import Callable

from benchmarks.cluster import approvals, failover, planning, visibility, workers
from benchmarks.cluster.nodes import row

PARTS: dict[str, Callable[[bool], None]] = {
    "visible": lambda quick: visibility.main(30 if quick else 300),
    "approvals": lambda quick: approvals.main(1, 200) if quick else approvals.main(),
    "workers": lambda quick: workers.main(1, 1.0) if quick else workers.main(),
    "planning": lambda quick: planning.main(20, 2.0) if quick else planning.main(),
    "failover": lambda _: failover.main(),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument("--quick", action="store_true", help="only see that each part works")
    options = parser.parse_args()
    row("what", "figure", "target")
    for name in options.only:
        PARTS[name](options.quick)


if __name__ == "__main__":
    main()
