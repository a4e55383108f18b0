"""DHCP option 245: the address of the service, for machines outside a virtual network.

A DISCOVER is broadcast on each interface and the offers are read; no lease is asked for, so
nothing changes on the network. It needs the right to bind port 68, as root has.
"""

import ipaddress
import secrets
import socket
import struct
import time
from pathlib import Path

OPTION = 245
WAIT_S = 5.0
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _ETHERNET, _BROADCAST = 1, 1, 0x8000
_HEAD = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_OPTION_PAD, _OPTION_END, _OPTION_TYPE, _OPTION_WANTED = 0, 255, 53, 55
_DISCOVER = 1
_NOTHING = b"\0\0\0\0"
_BIND_TO_DEVICE = 25


def discover(transaction: int, hardware: bytes) -> bytes:
    head = _HEAD.pack(
        _REQUEST, _ETHERNET, 6, 0, transaction, 0, _BROADCAST, _NOTHING, _NOTHING, _NOTHING,
        _NOTHING, hardware.ljust(16, b"\0"), b"", b"",
    )  # fmt: skip
    options = bytes((_OPTION_TYPE, 1, _DISCOVER, _OPTION_WANTED, 3, 1, 3, OPTION, _OPTION_END))
    return head + _COOKIE + options


def offered_address(packet: bytes, transaction: int) -> str | None:
    """The value of option 245, if this is an answer to our question that has one."""
    if len(packet) < _HEAD.size + 4 or packet[_HEAD.size : _HEAD.size + 4] != _COOKIE:
        return None
    if packet[0] == _REQUEST or struct.unpack_from("!I", packet, 4)[0] != transaction:
        return None
    at = _HEAD.size + 4
    while at + 1 < len(packet) and packet[at] != _OPTION_END:
        if packet[at] == _OPTION_PAD:
            at += 1
            continue
        code, length = packet[at], packet[at + 1]
        value = packet[at + 2 : at + 2 + length]
        if code == OPTION and len(value) == 4:
            return str(ipaddress.IPv4Address(value))
        at += 2 + length
    return None


def scheduled_events_address(wait_s: float = WAIT_S) -> str | None:
    """Asks on every interface that is up; None if nobody says, or we may not ask."""
    for name, hardware in interfaces():
        found = _ask_on(name, hardware, wait_s)
        if found is not None:
            return found
    return None


def interfaces() -> list[tuple[str, bytes]]:
    """Name and hardware address of each Ethernet interface that is up."""
    found = []
    for folder in sorted(Path("/sys/class/net").glob("*")):
        try:
            kind = (folder / "type").read_text().strip()
            state = (folder / "operstate").read_text().strip()
            hardware = (folder / "address").read_text().strip()
        except OSError:
            continue
        if kind == "1" and state in ("up", "unknown"):
            found.append((folder.name, bytes.fromhex(hardware.replace(":", ""))))
    return found


def _ask_on(name: str, hardware: bytes, wait_s: float) -> str | None:
    transaction = secrets.randbits(32)
    ends_s = time.monotonic() + wait_s
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            asking.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, name.encode() + b"\0")
            asking.bind(("0.0.0.0", 68))  # noqa: S104  (an offer is broadcast)
            asking.sendto(discover(transaction, hardware), ("255.255.255.255", 67))
            while (left_s := ends_s - time.monotonic()) > 0:
                asking.settimeout(left_s)
                found = offered_address(asking.recv(4096), transaction)
                if found is not None:
                    return found
    except OSError:
        return None
    return None
