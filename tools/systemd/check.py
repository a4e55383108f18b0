"""Checks the agent and the server as services of a real systemd, in virtual machines that are made
for the run.

    python3 tools/systemd/check.py --install     gets the Debian packages that are missing
    python3 tools/systemd/check.py               one line for each thing seen; exit code 1 if not
    python3 tools/systemd/check.py server        only the server

A machine has no network but the way to our server. Needs no root (`--install` does).
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.systemd.packages import INSTALL, missing
from tools.systemd.play import PLAYS

_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the services under a real systemd.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PLAYS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - PLAYS.keys():
        parser.error(f"{min(unknown)} is none of {', '.join(PLAYS)}")
    if options.install and missing():
        subprocess.run(["apt-get", "update", "--quiet"], check=True)  # noqa: S607
        subprocess.run(INSTALL, check=True)  # noqa: S603
    if absent := missing():
        print(f"missing: {', '.join(absent)}; run: {' '.join(INSTALL)}", file=sys.stderr)
        return _BAD_USAGE
    began_s = time.monotonic()
    try:
        for name in options.names or PLAYS:
            for line in PLAYS[name]():
                print(f"pass  {time.monotonic() - began_s:4.0f} s  {line}", flush=True)
    except AssertionError as failure:
        print(f"FAIL  {time.monotonic() - began_s:4.0f} s  {failure}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
