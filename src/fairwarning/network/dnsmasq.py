"""Writes the part of a dnsmasq configuration that tells guests their address and their way to the
metadata endpoint. This module is pure.
"""

import ipaddress
import re
from collections.abc import Iterator

from fairwarning.network.network_file import Guest, Network, NetworkFile

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NOT_A_NAME = re.compile(r"ignore|infinite|[0-9]+[smhdw]?", re.IGNORECASE)
"""dnsmasq would read such a word of `dhcp-host` as an order or as the time of the lease."""
_ON_LINK = "0.0.0.0"  # noqa: S104 - RFC 3442: this router means that the address is on the link.


def dnsmasq_lines(file: NetworkFile) -> Iterator[str]:
    """Yield the lines for all guests that have a hardware address.

    Options carry the tag of their network, so that one dnsmasq can serve several.
    """
    for network in file.networks:
        yield f"# network {network.name}"
        yield from _options(network)
        for guest in network.guests:
            if guest.mac and (lease := _lease(network, guest)):
                yield lease


def _options(network: Network) -> Iterator[str]:
    tag = f"tag:{network.name}"
    if ipaddress.ip_address(network.endpoint).version == 4:
        # A client that gets option 121 ignores option 3, so the default route is in it too.
        routes = f"{network.endpoint}/32,{network.router or _ON_LINK}"
        if network.router:
            routes += f",0.0.0.0/0,{network.router}"
        yield f"dhcp-option={tag},option:classless-static-route,{routes}"
        # Older versions of Windows ask for the same routes under this number.
        yield f"dhcp-option={tag},249,{routes}"
    # Few DHCP clients ask for option 245, so it is sent without being asked for.
    yield f"dhcp-option-force={tag},245,{network.option_245}"


def _lease(network: Network, guest: Guest) -> str:
    parsed = [ipaddress.ip_address(each) for each in guest.addresses]
    first = {version: next((a for a in parsed if a.version == version), None) for version in (4, 6)}
    if first[4] is None and first[6] is None:
        return ""
    words = [guest.mac, f"set:{network.name}"]
    words += [str(first[4])] if first[4] else []
    words += [f"[{first[6]}]"] if first[6] else []
    name = guest.instance.rpartition("/")[2]
    is_name = _HOST_NAME.fullmatch(name) and not _NOT_A_NAME.fullmatch(name)
    words += [name] if is_name else []
    return f"dhcp-host={','.join(words)}"
