"""The checks share this: a bridge with guests on it, loaded rules, and frames to send."""

import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from tests.support.patience import HANG_S
from tests.support.vms import Rig, Vm
from tools.debian_packages import program

BRIDGE = "br0"
ROUTER = "10.0.0.1"
ARP, IP, IP6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100
"""The kinds of frames, as Ethernet numbers them."""
_ALL_PROTOCOLS = 3
"""ETH_P_ALL."""
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_NAME_PATH = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
_ASK = f"""
import urllib.request
request = urllib.request.Request(
    "http://169.254.169.254{_NAME_PATH}", headers={{"Metadata": "true"}})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
print(opener.open(request, timeout={HANG_S}).read().decode())
"""


def ip(*words: str, inside: Vm | None = None) -> str:
    """Runs the `ip` command, in a guest's network if one is given, and returns its output."""
    argv = [program("ip"), *words]
    done = subprocess.run(  # noqa: S603
        inside.command(argv) if inside else argv, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


def bridge_guests(rig: Rig, macs: Mapping[str, str]) -> None:
    """Plugs the guests' links into a bridge on which the host is router and endpoint."""
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("link", "set", BRIDGE, "up")
    ip("address", "add", f"{ROUTER}/24", "dev", BRIDGE)
    for number, (name, vm) in enumerate(rig.vms.items()):
        ip("link", "set", "eth0", "down", inside=vm)
        ip("link", "set", "eth0", "address", macs[name], inside=vm)
        ip("link", "set", "eth0", "up", inside=vm)
        ip("route", "replace", "169.254.169.254", "dev", "eth0", inside=vm)
        ip("address", "flush", "dev", f"vm{number}")
        ip("route", "flush", "dev", f"vm{number}")
        ip("link", "set", f"vm{number}", "master", BRIDGE)
    for number, vm in enumerate(rig.vms.values()):
        _wait_until_up(f"vm{number}")
        _wait_until_up("eth0", inside=vm)
    _wait_until_up(BRIDGE)


def _wait_until_up(interface: str, inside: Vm | None = None) -> None:
    """Waits until the interface passes frames. The kernel looks at its carrier now and then."""
    deadline = time.monotonic() + HANG_S
    while True:
        link = json.loads(ip("-json", "-details", "link", "show", interface, inside=inside))[0]
        port = link.get("linkinfo", {}).get("info_slave_data", {"state": "forwarding"})
        if link["operstate"] == "UP" and port["state"] == "forwarding":
            return
        assert time.monotonic() < deadline, f"{interface} does not come up: {link}"
        time.sleep(0.02)


def network_toml(guests: Sequence[Mapping[str, object]], **keys: str) -> str:
    """Returns a network file with one network, called `lab`."""
    lines = ["[[network]]", 'name = "lab"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    for guest in guests:
        lines += ["[[network.guests]]", *(f"{k} = {json.dumps(v)}" for k, v in guest.items())]
    return "\n".join([*lines, ""])


def printed(command: str, text: str, *options: str) -> str:
    """Returns what `fairwarning network COMMAND` prints for the text of a network file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "network.toml")
        file.write_text(text)
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "fairwarning", "network", command, str(file), *options],
            capture_output=True,
            text=True,
            check=True,
        ).stdout


def load_rules(text: str) -> None:
    """Loads the rules for a network file twice, since they are loaded again after each change."""
    rules = printed("rules", text)
    for _ in range(2):
        done = subprocess.run(  # noqa: S603
            [program("nft"), "-f", "-"], input=rules, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr


def name_told_to(vm: Vm) -> str:
    """Returns the name by which the endpoint calls this guest."""
    done = vm.run([sys.executable, "-c", _ASK])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def send_frames(vm: Vm, frames: Sequence[bytes]) -> None:
    def send() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as card:
            card.bind(("eth0", 0))
            for frame in frames:
                card.send(frame)

    vm.call(send)


def listen_to(interface: str) -> socket.socket:
    """Returns a socket that hears every frame which comes in at the interface."""
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    heard.bind((interface, 0))
    heard.settimeout(HANG_S)
    return heard


def marks_until(heard: socket.socket, marks: Sequence[str], last: str) -> set[str]:
    """Returns which of the marks came before `last`. A link keeps the order of its frames."""
    found: set[str] = set()
    while last not in found:
        frame = heard.recv(65_536)
        found |= {each for each in (*marks, last) if b"<" + each.encode() + b">" in frame}
    return found - {last}


def ether(source: str, kind: int, payload: bytes, mark: str) -> bytes:
    """Returns a frame to everybody. The mark is in the payload of IP, and behind any other."""
    ending = b"<" + mark.encode() + b">"
    if kind == IP:
        payload = _ipv4_with(payload, ending)
    elif kind == IP6:
        payload = _ipv6_with(payload, ending)
    else:
        payload = payload.ljust(46, b"\0") + ending
    return _mac(_BROADCAST) + _mac(source) + struct.pack("!H", kind) + payload


def arp(mac: str, address: str, *, target: str = ROUTER, operation: int = 2) -> bytes:
    return (
        struct.pack("!HHBBH", 1, IP, 6, 4, operation)
        + _mac(mac) + IPv4Address(address).packed
        + _mac(_BROADCAST) + IPv4Address(target).packed
    )  # fmt: skip


def ipv4_udp(source: str, target: str, *, sport: int = 40_000, dport: int = 40_000) -> bytes:
    addresses = IPv4Address(source).packed + IPv4Address(target).packed
    head = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, 17, 0) + addresses
    return head + struct.pack("!HHHH", sport, dport, 0, 0)


def ipv6_icmp(source: str, kind: int, body: bytes, target: str = "ff02::1") -> bytes:
    addresses = IPv6Address(source).packed + IPv6Address(target).packed
    return struct.pack("!IHBB", 6 << 28, 0, 58, 255) + addresses + bytes([kind, 0, 0, 0]) + body


def _ipv4_with(packet: bytes, ending: bytes) -> bytes:
    """Returns the UDP packet with this content, and with its lengths and checksum."""
    head = packet[:2] + struct.pack("!H", len(packet) + len(ending)) + packet[4:20]
    head = head[:10] + struct.pack("!H", _checksum(head)) + head[12:]
    return head + packet[20:24] + struct.pack("!HH", 8 + len(ending), 0) + ending


def _ipv6_with(packet: bytes, ending: bytes) -> bytes:
    """Returns the ICMPv6 packet with this behind its body, and with its length and checksum."""
    ending += bytes(len(ending) % 2)
    message = packet[40:] + ending
    pseudo = packet[8:40] + struct.pack("!IHBB", len(message), 0, 0, 58)
    message = message[:2] + struct.pack("!H", _checksum(pseudo + message)) + message[4:]
    return packet[:4] + struct.pack("!H", len(message)) + packet[6:40] + message


def advertisement(target: str) -> bytes:
    """Returns the body of a neighbour advertisement or solicitation for the address."""
    return bytes(4) + IPv6Address(target).packed


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
