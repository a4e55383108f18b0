"""Checks the recipes of docs/network.md with real nftables, dnsmasq and servers.

    python3 tools/network/check.py --install     gets the Debian packages that are missing
    python3 tools/network/check.py               one line a check; exit code 1 if one fails

Everything happens in network namespaces that are made for the run: nothing is ever sent to
169.254.169.254 outside them. Needs no root (`--install` does).
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.namespaces import NoNamespaces
from tools.debian_packages import Needs
from tools.suite_check import passes

NEEDS = Needs(
    programs={
        "dnsmasq": "dnsmasq-base",
        "ip": "iproute2",
        "nft": "nftables",
        "nsenter": "util-linux",
        "udhcpc": "udhcpc",
        "unshare": "util-linux",
    },
    modules=("pyroute2",),
)
_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the recipes of docs/network.md.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    options = parser.parse_args()
    if options.install:
        NEEDS.install()
    for line in (lines := NEEDS.missing()):
        print(line, file=sys.stderr)
    if lines:
        return _BAD_USAGE
    # Only now: they need what was just found to be there.
    from tools.network.bridge import check_bridge  # noqa: PLC0415
    from tools.network.leases import check_leases  # noqa: PLC0415
    from tools.network.routed import check_routed  # noqa: PLC0415
    from tools.network.tenants import check_tenants  # noqa: PLC0415

    checks: dict[str, Callable[[], list[str]]] = {
        "bridge": check_bridge,
        "routed": check_routed,
        "tenants": check_tenants,
        "leases": check_leases,
    }
    try:
        failed = [name for name, check in checks.items() if not passes(name, check)]
    except NoNamespaces as obstacle:
        print(obstacle, file=sys.stderr)
        return _BAD_USAGE
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
