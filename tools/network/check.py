"""Checks the recipes of docs/network.md with real nftables, dnsmasq and servers.

    python3 tools/network/check.py --install     gets the Debian packages that are missing
    python3 tools/network/check.py               one line a check; exit code 1 if one fails

Everything happens in network namespaces that are made for the run: nothing is ever sent to
169.254.169.254 outside them. Needs no root (`--install` does).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.debian_packages import Needs
from tools.suite_check import run_suite

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
CHECKS = {
    "bridge": "tools.network.bridge:check_bridge",
    "routed": "tools.network.routed:check_routed",
    "tenants": "tools.network.tenants:check_tenants",
    "leases": "tools.network.leases:check_leases",
}

if __name__ == "__main__":
    sys.exit(run_suite("Check the recipes of docs/network.md.", NEEDS, CHECKS))
