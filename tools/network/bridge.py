"""Checks guests on a bridge: each is known by its address, and none can take another's."""

import struct

from fairwarning.network.nftables import link_local
from tests.support.endpoint_process import serving_endpoint
from tests.support.namespaces import ENDPOINT, run_in_vms
from tests.support.vms import Rig
from tools.network.lab import (
    ARP,
    BRIDGE,
    IP,
    IP6,
    ROUTER,
    VLAN,
    advertisement,
    arp,
    bridge_guests,
    ether,
    ip,
    ipv4_udp,
    ipv6_icmp,
    listen_to,
    load_rules,
    marks_until,
    name_told_to,
    network_toml,
    send_frames,
)

VICTIM, ATTACKER, NEWCOMER = "10.0.0.10", "10.0.0.11", "10.0.0.12"
VICTIM_6, ATTACKER_6 = "fd00::10", "fd00::11"
VMS = {"victim": [VICTIM, VICTIM_6], "attacker": [ATTACKER, ATTACKER_6], "newcomer": [NEWCOMER]}
MACS = {
    "victim": "52:54:00:00:00:10",
    "attacker": "52:54:00:00:00:11",
    "newcomer": "52:54:00:00:00:12",
}
ADVERTISE, SOLICIT, ROUTER_ADVERT, REDIRECT, ECHO = 136, 135, 134, 137, 128


def check_bridge() -> list[str]:
    found = run_in_vms(play, VMS, endpoints=[])
    forged, honest = set(forged_frames()), set(honest_frames())
    for place in ("host", "victim"):
        before, after = set(found["before"][place]), set(found["after"][place])
        assert before == forged | honest, f"without rules, {place} lacks {forged | honest - before}"
        assert after == honest, f"with rules, {place}: {sorted(after ^ honest)}"
    strange = set(newcomer_frames())
    assert set(found["newcomer before"]) == strange, found
    assert set(found["newcomer after"]) == set(), found
    assert found["names"] == {"victim": "victim", "attacker": "attacker"}, found
    return [
        f"{len(forged)} kinds of forged frames reach host and neighbour without the rules, and "
        "none with them",
        f"{len(honest)} kinds of honest frames pass with the rules",
        f"a port that is no guest's cannot use a guest's address ({len(strange)} kinds of frames)",
        "the endpoint on the bridge tells each guest its own name, under the rules",
    ]


def forged_frames() -> dict[str, bytes]:
    mine, other = MACS["attacker"], MACS["victim"]
    tagged = struct.pack("!HH", 7, IP) + ipv4_udp(VICTIM, ROUTER)
    return {
        mark: ether(source, kind, payload, mark)
        for mark, source, kind, payload in (
            ("another's IPv4", mine, IP, ipv4_udp(VICTIM, ROUTER)),
            ("the endpoint's IPv4", mine, IP, ipv4_udp(ENDPOINT, VICTIM)),
            ("another's card", other, IP, ipv4_udp(ATTACKER, ROUTER)),
            ("ARP for another", mine, ARP, arp(mine, VICTIM)),
            ("ARP for the endpoint", mine, ARP, arp(mine, ENDPOINT, target=VICTIM)),
            ("ARP for the router", mine, ARP, arp(mine, ROUTER, target=VICTIM)),
            ("ARP with another's card", mine, ARP, arp(other, ATTACKER)),
            ("another's IPv6", mine, IP6, ipv6_icmp(VICTIM_6, ECHO, bytes(4))),
            ("another's link-local", mine, IP6, ipv6_icmp(link_local(other), ECHO, bytes(4))),
            ("neighbour another", mine, IP6, ipv6_icmp(
                link_local(mine), ADVERTISE, advertisement(VICTIM_6))),
            ("neighbour from nobody", mine, IP6, ipv6_icmp(
                "::", ADVERTISE, advertisement(VICTIM_6))),
            ("a router", mine, IP6, ipv6_icmp(link_local(mine), ROUTER_ADVERT, bytes(12))),
            ("a redirect", mine, IP6, ipv6_icmp(link_local(mine), REDIRECT, bytes(36))),
            ("a DHCP server", mine, IP, ipv4_udp(ATTACKER, VICTIM, sport=67, dport=68)),
            ("in a VLAN", mine, VLAN, tagged),
            ("another protocol", mine, 0x88CC, b"LLDP"),
        )
    }  # fmt: skip


def honest_frames() -> dict[str, bytes]:
    mine = MACS["attacker"]
    return {
        mark: ether(mine, kind, payload, mark)
        for mark, kind, payload in (
            ("own IPv4", IP, ipv4_udp(ATTACKER, ROUTER)),
            ("own ARP", ARP, arp(mine, ATTACKER)),
            ("ARP probe", ARP, arp(mine, "0.0.0.0", operation=1)),  # noqa: S104
            ("DHCP", IP, ipv4_udp("0.0.0.0", "255.255.255.255", sport=68, dport=67)),  # noqa: S104
            ("own IPv6", IP6, ipv6_icmp(ATTACKER_6, ECHO, bytes(4))),
            ("own link-local", IP6, ipv6_icmp(link_local(mine), ECHO, bytes(4))),
            ("own neighbour", IP6, ipv6_icmp(ATTACKER_6, ADVERTISE, advertisement(ATTACKER_6))),
            ("is it free", IP6, ipv6_icmp("::", SOLICIT, advertisement(ATTACKER_6))),
        )
    }


def newcomer_frames() -> dict[str, bytes]:
    """Returns what a guest might send that the network file does not name yet."""
    mine = MACS["newcomer"]
    return {
        mark: ether(mine, kind, payload, mark)
        for mark, kind, payload in (
            ("IPv4 of a guest", IP, ipv4_udp(VICTIM, ROUTER)),
            ("ARP for a guest", ARP, arp(mine, VICTIM)),
            ("ARP as the endpoint", ARP, arp(mine, ENDPOINT)),
            ("IPv6 of a guest", IP6, ipv6_icmp(VICTIM_6, ECHO, bytes(4))),
            ("neighbour a guest", IP6, ipv6_icmp("fe80::1", ADVERTISE, advertisement(VICTIM_6))),
        )
    }


def play(rig: Rig) -> dict[str, object]:
    bridge_guests(rig, MACS)
    found: dict[str, object] = {"before": _attack(rig), "newcomer before": _intrude(rig)}
    guests = [
        {"instance": name, "interface": f"vm{n}", "mac": MACS[name], "addresses": VMS[name]}
        for n, name in enumerate(("victim", "attacker"))
    ]
    load_rules(network_toml(guests, bridge=BRIDGE))
    found |= {"after": _attack(rig), "newcomer after": _intrude(rig)}
    fleet = {"lab": {name: [VMS[name][0]] for name in ("victim", "attacker")}}
    ip("address", "add", f"{ENDPOINT}/32", "dev", BRIDGE)
    with serving_endpoint(fleet, f"{ENDPOINT}:80"):
        found["names"] = {name: name_told_to(rig.vms[name]) for name in ("victim", "attacker")}
    return found


def _attack(rig: Rig) -> dict[str, list[str]]:
    """Returns the marks of the frames that the host and the victim hear."""
    frames = forged_frames() | honest_frames()
    last = ether(MACS["attacker"], IP, ipv4_udp(ATTACKER, ROUTER), "the last")
    with listen_to(BRIDGE) as host, rig.vms["victim"].call(listen_to, "eth0") as victim:
        send_frames(rig.vms["attacker"], [*frames.values(), last])
        return {
            name: sorted(marks_until(heard, list(frames), "the last"))
            for name, heard in (("host", host), ("victim", victim))
        }


def _intrude(rig: Rig) -> list[str]:
    frames = newcomer_frames()
    last = ether(MACS["newcomer"], IP, ipv4_udp(NEWCOMER, ROUTER), "the last")
    with listen_to(BRIDGE) as host:
        send_frames(rig.vms["newcomer"], [*frames.values(), last])
        return sorted(marks_until(host, list(frames), "the last"))
