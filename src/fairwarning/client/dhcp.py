"""DHCP option 245: the address of the service, for machines outside a virtual network.

A DISCOVER is broadcast on every interface at once and the offers are read; no lease is asked
for, so nothing changes on the network. It goes through a packet socket, as DHCP clients do: the
interface may have no address yet, and port 68 may belong to the system's own client. That needs
the right CAP_NET_RAW, as root has.
"""

import ctypes
import secrets
import socket
import struct
import time
from fcntl import ioctl

from fairwarning.client.dhcp_packets import discover, offered_address, payload, wrapped

WAIT_S = 5.0
REPEAT_S = 1.0
"""A broadcast may get lost, and an interface that just came up loses the first."""
_IP = 0x0800
_EVERYONE = b"\xff" * 6
_ATTACH_FILTER = 26
_GET_FLAGS, _GET_HARDWARE = 0x8913, 0x8927
_ETHERNET, _UP, _BROADCASTS = 1, 0x1, 0x2
_TO_PORT_68 = (
    (0x30, 0, 0, 9),  # the protocol
    (0x15, 0, 3, socket.IPPROTO_UDP),
    (0xB1, 0, 0, 0),  # the length of the head
    (0x48, 0, 0, 2),  # the port
    (0x15, 1, 0, 68),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFF),
)
"""A program for the kernel: let only answers of DHCP servers through, however busy we are."""


def scheduled_events_address(wait_s: float = WAIT_S) -> str | None:
    """Asks on every interface that is up; None if nobody says, or we may not ask."""
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_IP)) as asking:
            _let_through_only_offers(asking)
            return _ask(asking, secrets.randbits(32), wait_s)
    except OSError:
        return None


def interfaces(asking: socket.socket) -> list[tuple[str, bytes]]:
    """Name and hardware address of each Ethernet interface that is up."""
    found = []
    for _, name in socket.if_nameindex():
        request = struct.pack("16s16x", name.encode())
        # Not /sys: there a process may see the interfaces of another network than its own.
        try:
            flags = struct.unpack_from("H", ioctl(asking, _GET_FLAGS, request), 16)[0]
            kind, hardware = struct.unpack_from("H6s", ioctl(asking, _GET_HARDWARE, request), 16)
        except OSError:
            continue
        if kind == _ETHERNET and flags & _UP and flags & _BROADCASTS:
            found.append((name, hardware))
    return found


def _ask(asking: socket.socket, transaction: int, wait_s: float) -> str | None:
    ends_s = time.monotonic() + wait_s
    while time.monotonic() < ends_s:
        for name, hardware in interfaces(asking):
            _send(asking, name, wrapped(discover(transaction, hardware)))
        found = _listen(asking, transaction, min(ends_s, time.monotonic() + REPEAT_S))
        if found is not None:
            return found
    return None


def _send(asking: socket.socket, interface: str, packet: bytes) -> None:
    try:
        asking.sendto(packet, (interface, _IP, 0, 0, _EVERYONE))
    except OSError:
        # It went away or down; the others may still answer.
        return


def _listen(asking: socket.socket, transaction: int, until_s: float) -> str | None:
    while (left_s := until_s - time.monotonic()) > 0:
        asking.settimeout(left_s)
        try:
            message = payload(asking.recv(4096))
        except TimeoutError:
            return None
        found = None if message is None else offered_address(message, transaction)
        if found is not None:
            return found
    return None


def _let_through_only_offers(asking: socket.socket) -> None:
    program = b"".join(struct.pack("HBBI", *line) for line in _TO_PORT_68)
    kept = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(_TO_PORT_68), ctypes.addressof(kept))
    asking.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, head)
