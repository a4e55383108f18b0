"""Discovery finds the service's URL: in the environment, at the usual address, or through DHCP.

A VM in a virtual network finds the service at 169.254.169.254. A VM outside of one (cloud services,
classic VMs) gets another address from its DHCP server, in option 245.
"""

import os
import socket
from collections.abc import Callable, Mapping

USUAL_HOST = "169.254.169.254"
USUAL_URL = f"http://{USUAL_HOST}"
VARIABLES = ("FAIRWARNING_METADATA_URL", "SCHEDULEDEVENTSIP")
"""The environment variables that are read. The first is ours and has a URL. The second is from
Azure's own sample and has only an address.
"""
REACH_S_MAX = 2.0
"""How long a connection attempt may take. The service is on the same host, so it answers at once or
never.
"""
_PORT, _OTHER_PORT = 80, 8080
"""One of the two clients that Azure published uses the second port."""


def endpoint_url(
    environment: Mapping[str, str] | None = None,
    *,
    is_reachable: Callable[[str, int], bool] | None = None,
    ask_dhcp: Callable[[], str | None] | None = None,
) -> str:
    """Return the service's URL: from the environment, else the usual one if it is reachable, else
    from DHCP.

    If all of these fail, it returns the usual URL, because the service may still come up there.
    """
    environment = os.environ if environment is None else environment
    is_reachable = is_reachable or _is_reachable
    for name in VARIABLES:
        value = environment.get(name, "").strip()
        if value:
            return value if "://" in value else f"http://{value}"
    if is_reachable(USUAL_HOST, _PORT):
        return USUAL_URL
    address = (ask_dhcp or _ask_dhcp)()
    if address is None:
        return USUAL_URL
    if not is_reachable(address, _PORT) and is_reachable(address, _OTHER_PORT):
        return f"http://{address}:{_OTHER_PORT}"
    return f"http://{address}"


def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=REACH_S_MAX).close()
    except OSError:
        return False
    return True


def _ask_dhcp() -> str | None:
    from fairwarning.client.dhcp import scheduled_events_address  # noqa: PLC0415  (seldom needed)

    return scheduled_events_address()
