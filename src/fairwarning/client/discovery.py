"""Where the service is: what was said, the environment, the usual address, or DHCP's word.

A machine in a virtual network finds it at 169.254.169.254. One outside (cloud services,
classic VMs) is told another address by its DHCP server, in option 245.
"""

import os
import socket
from collections.abc import Callable, Mapping

USUAL_URL = "http://169.254.169.254"
VARIABLES = ("FAIRWARNING_METADATA_URL", "SCHEDULEDEVENTSIP")
"""Ours, a whole URL; and the one of Azure's own sample, an address alone."""
REACH_S_MAX = 2.0


def endpoint_url(
    environment: Mapping[str, str] | None = None,
    *,
    is_reachable: Callable[[str], bool] | None = None,
    ask_dhcp: Callable[[], str | None] | None = None,
) -> str:
    """Of the first that answers; the usual one if none does, for it may yet come up."""
    environment = os.environ if environment is None else environment
    for name in VARIABLES:
        value = environment.get(name, "").strip()
        if value:
            return value if "://" in value else f"http://{value}"
    if (is_reachable or _is_reachable)("169.254.169.254"):
        return USUAL_URL
    address = (ask_dhcp or _ask_dhcp)()
    return USUAL_URL if address is None else f"http://{address}"


def _is_reachable(host: str) -> bool:
    try:
        socket.create_connection((host, 80), timeout=REACH_S_MAX).close()
    except OSError:
        return False
    return True


def _ask_dhcp() -> str | None:
    from fairwarning.client.dhcp import scheduled_events_address  # noqa: PLC0415  (seldom needed)

    return scheduled_events_address()
