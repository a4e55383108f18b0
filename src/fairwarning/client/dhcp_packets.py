"""What DHCP's packets say, as bytes. Pure."""

import ipaddress
import struct

OPTION = 245
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _ETHERNET, _BROADCAST = 1, 1, 0x8000
_HEAD = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_OPTION_PAD, _OPTION_END, _OPTION_TYPE, _OPTION_WANTED = 0, 255, 53, 55
_DISCOVER = 1
_NOTHING = b"\0\0\0\0"
_IP_HEAD = struct.Struct("!BBHHHBBH4s4s")
_UDP_HEAD = struct.Struct("!HHHH")
_UDP = 17
_SERVER_PORT, _CLIENT_PORT = 67, 68


def discover(transaction: int, hardware: bytes) -> bytes:
    head = _HEAD.pack(
        _REQUEST, _ETHERNET, 6, 0, transaction, 0, _BROADCAST, _NOTHING, _NOTHING, _NOTHING,
        _NOTHING, hardware.ljust(16, b"\0"), b"", b"",
    )  # fmt: skip
    options = bytes((_OPTION_TYPE, 1, _DISCOVER, _OPTION_WANTED, 3, 1, 3, OPTION, _OPTION_END))
    return head + _COOKIE + options


def offered_address(message: bytes, transaction: int) -> str | None:
    """The value of option 245, if this is an answer to our question that has one."""
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
    """In UDP and IPv4, from an interface without an address to everybody."""
    size = _UDP_HEAD.size + len(message)
    # UDP over IPv4 may go without a checksum; the head may not.
    udp = _UDP_HEAD.pack(_CLIENT_PORT, _SERVER_PORT, size, 0)
    parts = (0x45, 0, _IP_HEAD.size + size, 0, 0, 64, _UDP)
    ends = (_NOTHING, b"\xff" * 4)
    checksum = _checksum(_IP_HEAD.pack(*parts, 0, *ends))
    return _IP_HEAD.pack(*parts, checksum, *ends) + udp + message


def payload(packet: bytes) -> bytes | None:
    """What an IPv4 packet has for a DHCP client; None if it is for another."""
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
