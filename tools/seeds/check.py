"""Runs the samples of the seed documents, as printed, against a server of ours.

    python3 tools/seeds/check.py --install       gets the Debian packages that are missing
    python3 tools/seeds/check.py SEEDS_FOLDER    one line a sample; exit code 1 if one fails

Everything happens in network namespaces that are made for the run: nothing is ever sent to
169.254.169.254 outside them. Needs no root (`--install` does).
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.namespaces import NoNamespaces, run_in_vms
from tools.seeds.packages import INSTALL, missing

_TIMEOUT_S = 600
_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the seed documents' samples as printed.")
    parser.add_argument("seeds", nargs="?", type=Path, help="the folder of the seed documents")
    parser.add_argument("--serve", help="the command that serves (default: ours)", metavar="CMD")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    options = parser.parse_args()
    if options.install and missing():
        subprocess.run(["apt-get", "update", "--quiet"], check=True)  # noqa: S607
        subprocess.run(INSTALL, check=True)  # noqa: S603
    if options.install and options.seeds is None:
        return 0
    if options.seeds is None or not options.seeds.is_dir():
        parser.error("name the folder of the seed documents")
    return _check(options.seeds, shlex.split(options.serve) if options.serve else [])


def _check(seeds: Path, serve: list[str]) -> int:
    for line in (lines := missing()):
        print(line, file=sys.stderr)
    if lines:
        return _BAD_USAGE
    # Only now: it needs what was just found to be there.
    from tests.support.endpoint_process import OURS  # noqa: PLC0415
    from tools.seeds.play import play_all  # noqa: PLC0415
    from tools.seeds.server import VMS  # noqa: PLC0415

    arguments = {"seeds": str(seeds.resolve()), "serve": serve or list(OURS)}
    try:
        went_well = run_in_vms(play_all, VMS, arguments=arguments, timeout_s=_TIMEOUT_S)
    except NoNamespaces as obstacle:
        print(obstacle, file=sys.stderr)
        return _BAD_USAGE
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
