"""DHCP tells a VM outside a virtual network the service's address, in option 245.

We broadcast a DISCOVER on every interface and read the offers. We request no lease, so nothing
changes on the network. We use a packet socket, as DHCP clients do, because the interface may have
no address yet, and the system's own client may use port 68. A packet socket needs the capability
CAP_NET_RAW, which root has.
"""

import ctypes
import ipaddress
import secrets
import socket
import struct
import time
from fcntl import ioctl

WAIT_S = 5.0
"""How long we wait for an offer, over all broadcasts. A DHCP server answers within a second or two.
"""
REPEAT_S = 1.0
"""The time between two broadcasts. We repeat it because a new interface may lose the first one."""
OPTION = 245
"""The option in which Azure's DHCP servers name the service."""
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _ETHERNET_HARDWARE, _BROADCAST = 1, 1, 0x8000
_HEAD = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_OPTION_PAD, _OPTION_END, _OPTION_TYPE, _OPTION_WANTED = 0, 255, 53, 55
_DISCOVER = 1
_NOTHING = b"\0\0\0\0"
_IP_HEAD = struct.Struct("!BBHHHBBH4s4s")
_UDP_HEAD = struct.Struct("!HHHH")
_UDP = 17
_SERVER_PORT, _CLIENT_PORT = 67, 68
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
"""A BPF filter for the kernel. It lets only UDP packets to port 68, the DHCP client's, through."""


def scheduled_events_address(wait_s: float = WAIT_S) -> str | None:
    """Return the service's address from DHCP. It is None if no offer has it or asking fails."""
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_IP)) as asking:
            _let_through_only_offers(asking)
            return _ask(asking, secrets.randbits(32), wait_s)
    except OSError:
        return None


def interfaces(asking: socket.socket) -> list[tuple[str, bytes]]:
    """Return the name and hardware address of each Ethernet interface that is up."""
    found = []
    for _, name in socket.if_nameindex():
        request = struct.pack("16s16x", name.encode())
        # We don't read /sys, because it may show the interfaces of another network namespace.
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
        # The interface is gone or down; servers on others may still answer.
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


def discover(transaction: int, hardware: bytes) -> bytes:
    """Return a DISCOVER message that asks for option 245."""
    head = _HEAD.pack(
        _REQUEST, _ETHERNET_HARDWARE, 6, 0, transaction, 0, _BROADCAST,
        _NOTHING, _NOTHING, _NOTHING,
        _NOTHING, hardware.ljust(16, b"\0"), b"", b"",
    )  # fmt: skip
    options = bytes((_OPTION_TYPE, 1, _DISCOVER, _OPTION_WANTED, 3, 1, 3, OPTION, _OPTION_END))
    return head + _COOKIE + options


def offered_address(message: bytes, transaction: int) -> str | None:
    """Return the address in option 245. It is None if the message has none, or is not for us.

    A message is for us if it has the `transaction` of our DISCOVER.
    """
    if len(message) < _HEAD.size + 4 or message[_HEAD.size : _HEAD.size + 4] != _COOKIE:
        return None
    if message[0] == _REQUEST or struct.unpack_from("!I", message, 4)[0] != transaction:
        return None
    at = _HEAD.size + 4
    while at + 1 < len(message) and message[at] != _OPTION_END:
        if message[at] == _OPTION_PAD:
            at += 1
            continue
        code, length = message[at], message[at + 1]
        value = message[at + 2 : at + 2 + length]
        if code == OPTION and len(value) == 4:
            return str(ipaddress.IPv4Address(value))
        at += 2 + length
    return None


def wrapped(message: bytes) -> bytes:
    """Return an IPv4 packet that broadcasts the message over UDP, without a source address."""
    size = _UDP_HEAD.size + len(message)
    # UDP over IPv4 needs no checksum (0); the IPv4 header does.
    udp = _UDP_HEAD.pack(_CLIENT_PORT, _SERVER_PORT, size, 0)
    parts = (0x45, 0, _IP_HEAD.size + size, 0, 0, 64, _UDP)
    ends = (_NOTHING, b"\xff" * 4)
    checksum = _checksum(_IP_HEAD.pack(*parts, 0, *ends))
    return _IP_HEAD.pack(*parts, checksum, *ends) + udp + message


def payload(packet: bytes) -> bytes | None:
    """Return the UDP payload of an IPv4 packet to the DHCP client port, else None."""
    if len(packet) < _IP_HEAD.size or packet[9] != _UDP:
        return None
    at = 4 * (packet[0] & 0x0F)
    if len(packet) < at + _UDP_HEAD.size:
        return None
    _, port, size, _ = _UDP_HEAD.unpack_from(packet, at)
    return packet[at + _UDP_HEAD.size : at + size] if port == _CLIENT_PORT else None


def _checksum(head: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(head) // 2}H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
