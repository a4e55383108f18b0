"""Runs the benchmarks of the driver libvirt and prints one table: `python -m benchmarks.libvirt`.

`--only suspend migrate reboot` chooses parts. The last two need root and the Debian packages that
`./test libvirt` installs.
"""

import argparse
from collections.abc import Callable

from benchmarks.cluster.nodes import row
from benchmarks.libvirt import suspend
from tools.libvirt_guests.check import run_on_new_machine

GUESTS = "benchmarks.libvirt.guests"


def _reboot() -> None:
    run_on_new_machine(GUESTS, "reboot-with-agent")
    run_on_new_machine(GUESTS, "reboot-without-agent")


PARTS: dict[str, Callable[[], object]] = {
    "suspend": suspend.main,
    "migrate": lambda: run_on_new_machine(GUESTS, "migrate"),
    "reboot": _reboot,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libvirt")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART")
    options = parser.parse_args()
    row("what", "figure", "target")
    for name in options.only:
        PARTS[name]()


if __name__ == "__main__":
    main()
