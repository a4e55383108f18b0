"""Reads the domains of a hypervisor and their addresses, for a fleet file."""

from typing import Any

import libvirt

from fairwarning.drivers.libvirt.inventory import Guest
from fairwarning.drivers.libvirt.libvirt_calls import LibvirtHost

SOURCES = (
    libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT,
    libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
)


async def read_guests(uri: str, call_s: float) -> list[Guest]:
    """Return all domains of the hypervisor. Raises DriverFailed."""
    return await LibvirtHost(uri, call_s).call(_guests)


def _guests(connection: Any) -> list[Guest]:
    return [
        Guest(name=each.name(), uuid=each.UUIDString(), addresses=_addresses(each))
        for each in connection.listAllDomains()
    ]


def _addresses(domain: Any) -> tuple[str, ...]:
    """Returns the addresses of the first source that has any. A domain that is off has none."""
    if not domain.isActive():
        return ()
    for source in SOURCES:
        try:
            interfaces = domain.interfaceAddresses(source)
        except libvirt.libvirtError:
            continue  # There is no agent, for example.
        found = [
            address["addr"]
            for interface in interfaces.values()
            for address in interface.get("addrs") or ()
        ]
        if found:
            return tuple(found)
    return ()
