"""Runs every documented command of `az`, and other clients, once against fresh servers of ours.

    python3 tools/azure_cli/check.py AZ [CLIENT=FOLDER…]

AZ is the program, FOLDER has a client that `tools/azure_clients` knows. One line is printed for
each command. Exit code 1 if one fails. Each check has a server, a home and a configuration of its
own.
"""

import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.azure_cli.az import Az, Report
from tools.azure_cli.bad_input import play_bad_input
from tools.azure_cli.management import play_management
from tools.azure_cli.scale_sets import play_documented, play_spot, play_uniform
from tools.azure_cli.server import Failed, Server, az_server
from tools.azure_cli.templates import play_templates
from tools.azure_cli.virtual_machines import play_virtual_machines
from tools.azure_clients.checks import Check, checks

_OF_AZ = (
    play_management, play_uniform, play_virtual_machines, play_documented, play_templates,
    play_bad_input, play_spot,
)  # fmt: skip
_AT_ONCE = 3
_BAD_USAGE = 2


def main() -> int:
    if len(sys.argv) < 2 or not all("=" in each for each in sys.argv[2:]):
        print("usage: check.py AZ [CLIENT=FOLDER…]", file=sys.stderr)
        return _BAD_USAGE
    program, report, started = Path(sys.argv[1]).absolute(), Report(), time.monotonic()
    clients = dict(each.split("=", 1) for each in sys.argv[2:])
    all_checks = {
        **checks({name: Path(folder).absolute() for name, folder in clients.items()}),
        **{play.__name__: _check_of_az(play, program) for play in _OF_AZ},
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ends = list(pool.map(lambda name: _run(name, all_checks[name], report), all_checks))
    broken = [each for each in ends if each]
    for each in broken:
        print(f"FAIL  {each}")
    passed = report.rows - report.failures
    print(f"{passed} commands passed, {len(broken)} of {len(all_checks)} checks failed, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    return 1 if broken else 0


def _check_of_az(play: Callable[[Az], None], program: Path) -> Check:
    def check(folder: Path, server: Server, report: Report) -> None:
        az = Az(program, folder, server, report)
        az.set_up()
        play(az)

    return check


def _run(name: str, check: Check, report: Report) -> str:
    """Returns what went wrong; empty if nothing did."""
    with tempfile.TemporaryDirectory(prefix="fairwarning-az-") as path:
        folder = Path(path)
        try:
            with az_server(folder) as server:
                check(folder, server, report)
        except Failed as failure:
            return f"{name}: {failure}\n{_end_of(folder / 'serve.log')}"
        except Exception:
            return f"{name}: {traceback.format_exc()}{_end_of(folder / 'serve.log')}"
    return ""


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-8:]) if log.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
