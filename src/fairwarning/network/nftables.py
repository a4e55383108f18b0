"""Writes nftables rules that drop what a guest sends under an address that is not its own.

This module is pure. On a bridge, the rules see each frame as it enters the port of a guest. They
compare the hardware address, and the addresses in ARP, IPv4, IPv6 and neighbour discovery, with
those of the network file. On routed links, they see each packet as it enters the host.
"""

import ipaddress
import json
from collections.abc import Iterator, Sequence

from fairwarning.network.network_file import Guest, Network, NetworkFile

_IPV6_LINK_LOCAL = 0xFE80 << 112
_TARGET = "@th,64,128"
"""The target of a neighbour advertisement: 128 bits behind the first 64 of its ICMPv6 message."""


class RulesIncomplete(ValueError):
    """A guest lacks something that the rules need. The message says which guest and what."""


def nftables_rules(file: NetworkFile) -> str:
    """Return a file for `nft -f`. It replaces the rules of an earlier one in one step.

    Raises RulesIncomplete, because a guest without rules could take any address.
    """
    for network in file.networks:
        for guest in network.guests:
            _refuse_incomplete(network, guest)
    bridged = [each for each in file.networks if each.bridge]
    routed = [each for each in file.networks if not each.bridge]
    tables = [
        *(_table("bridge", _bridge_chains(bridged)) if bridged else ()),
        *(_table("arp", _arp_chains(routed)) if routed else ()),
        *_table("inet", _inet_chains(file.networks, routed)),
    ]
    return "\n".join(["#!/usr/sbin/nft -f", *tables, ""])


def link_local(mac: str) -> str:
    """Return the IPv6 link-local address that a network card makes of its hardware address."""
    octets = [int(each, 16) for each in mac.split(":")]
    octets[0] ^= 0x02
    identifier = bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]])
    return str(ipaddress.IPv6Address(_IPV6_LINK_LOCAL | int.from_bytes(identifier)))


def _refuse_incomplete(network: Network, guest: Guest) -> None:
    lacks = [
        word
        for word, is_there in (
            ("interface", bool(guest.interface)),
            ("mac", bool(guest.mac) or not network.bridge),
            ("addresses", bool(guest.addresses)),
        )
        if not is_there
    ]
    if lacks:
        hint = "; it has none in the fleet either" if "addresses" in lacks else ""
        raise RulesIncomplete(
            f"guest {guest.instance} of network {network.name} has no "
            f"{' and no '.join(lacks)}{hint}; add it to the network file"
        )


def _table(family: str, chains: Iterator[str]) -> Iterator[str]:
    # It is created so that it can be deleted, also if it was not there. All is one transaction.
    yield f"table {family} fairwarning"
    yield f"delete table {family} fairwarning"
    yield f"table {family} fairwarning {{"
    yield from (f"\t{line}" if line else "" for line in chains)
    yield "}"


def _bridge_chains(networks: Sequence[Network]) -> Iterator[str]:
    guests = [guest for network in networks for guest in network.guests]
    addresses = [a for guest in guests for a in guest.addresses]
    # Not every kernel can match the bridge, so it is matched only where two have an address.
    is_shared = len(set(addresses)) < len(addresses)
    yield "chain prerouting {"
    yield "\ttype filter hook prerouting priority -300; policy accept;"
    yield from _dispatch(guests)
    for network in networks:
        on = f'meta ibrname "{network.bridge}" ' if is_shared else ""
        yield from (f"\t{on}{rule} drop" for rule in _foreign_ports(network))
    yield "}"
    yield "chain forward {"
    yield "\ttype filter hook forward priority -200; policy accept;"
    for endpoint in sorted({each.endpoint for each in networks if not each.namespace}):
        # Only the host is the endpoint, so nothing for it goes to another port.
        yield f"\t{_daddr(endpoint)} drop"
    yield "}"
    for guest in guests:
        yield from _bridged_guest(guest)


def _dispatch(guests: Sequence[Guest]) -> Iterator[str]:
    jumps = ", ".join(f'"{each.interface}" : goto {_chain(each)}' for each in guests)
    yield f"\tiifname vmap {{ {jumps} }}"


def _foreign_ports(network: Network) -> Iterator[str]:
    """Yield matches for what must not come from a port that belongs to no guest: the address of a
    guest, or of the endpoint if it is on this host.
    """
    four, six = _by_version([a for guest in network.guests for a in guest.addresses])
    if not network.namespace:
        (six if ":" in network.endpoint else four).append(network.endpoint)
    if four:
        yield f"arp saddr ip {_set(four)}"
        yield f"ip saddr {_set(four)}"
    if six:
        yield f"ip6 saddr {_set(six)}"
        yield f"icmpv6 type nd-neighbor-advert {_TARGET} {_numbers(six)}"


def _bridged_guest(guest: Guest) -> Iterator[str]:
    four, six = _by_version(guest.addresses)
    six = [*six, link_local(guest.mac)]
    yield f"chain {_chain(guest)} {{"
    yield f"\tcomment {json.dumps(guest.instance)}"
    yield f"\tether saddr != {guest.mac} drop"
    yield f"\tether type arp arp saddr ether != {guest.mac} drop"
    # 0.0.0.0 asks whether an address is free, and :: does the same in IPv6.
    yield f"\tether type arp arp saddr ip {_set([*four, '0.0.0.0'])} accept"  # noqa: S104
    yield "\tether type ip ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept"
    yield from _no_server("\t")
    if four:
        yield f"\tether type ip ip saddr {_set(four)} accept"
    yield (
        "\tether type ip6 ip6 saddr :: icmpv6 type "
        "{ nd-neighbor-solicit, nd-router-solicit, mld-listener-report, mld2-listener-report } "
        "accept"
    )
    yield f"\ticmpv6 type nd-neighbor-advert {_TARGET} != {_numbers(six)} drop"
    yield f"\tether type ip6 ip6 saddr {_set(six)} accept"
    yield "\tdrop"
    yield "}"


def _no_server(indent: str) -> Iterator[str]:
    """Yield the rules that keep a guest from answering as a DHCP server or an IPv6 router."""
    yield f"{indent}udp sport {{ 67, 547 }} drop"
    yield f"{indent}icmpv6 type {{ nd-router-advert, nd-redirect }} drop"


def _arp_chains(networks: Sequence[Network]) -> Iterator[str]:
    guests = [guest for network in networks for guest in network.guests]
    yield "chain input {"
    yield "\ttype filter hook input priority 0; policy accept;"
    yield from _dispatch(guests)
    yield "}"
    for guest in guests:
        four, _ = _by_version(guest.addresses)
        yield f"chain {_chain(guest)} {{"
        yield f"\tarp saddr ip {_set([*four, '0.0.0.0'])} accept"  # noqa: S104
        yield "\tdrop"
        yield "}"


def _inet_chains(networks: Sequence[Network], routed: Sequence[Network]) -> Iterator[str]:
    guests = [guest for network in routed for guest in network.guests]
    if guests:
        yield "chain prerouting {"
        yield "\ttype filter hook prerouting priority raw; policy accept;"
        yield from _dispatch(guests)
        four, six = _by_version([a for guest in guests for a in guest.addresses])
        yield from (f"\tip saddr {_set(four)} drop",) if four else ()
        yield from (f"\tip6 saddr {_set(six)} drop",) if six else ()
        yield "}"
        for guest in guests:
            yield from _routed_guest(guest)
    here = [each for each in networks if not each.namespace]
    endpoints = sorted({each.endpoint for each in here})
    yield "chain input {"
    yield "\ttype filter hook input priority filter; policy accept;"
    for endpoint in endpoints:
        doors = {"lo"}
        for network in here:
            if network.endpoint == endpoint:
                doors |= {network.bridge} if network.bridge else {
                    guest.interface for guest in network.guests}  # fmt: skip
        yield f"\tiifname != {_quoted(sorted(doors))} {_daddr(endpoint)} drop"
    yield "}"
    yield "chain forward {"
    yield "\ttype filter hook forward priority filter; policy accept;"
    for endpoint in endpoints:
        yield f"\t{_daddr(endpoint)} drop"
        yield f"\t{_daddr(endpoint).replace('daddr', 'saddr')} drop"
    yield "}"


def _routed_guest(guest: Guest) -> Iterator[str]:
    four, six = _by_version(guest.addresses)
    yield f"chain {_chain(guest)} {{"
    yield f"\tcomment {json.dumps(guest.instance)}"
    yield "\tip saddr 0.0.0.0 udp sport 68 udp dport 67 accept"
    yield from _no_server("\t")
    if four:
        yield f"\tip saddr {_set(four)} accept"
    # On a link of its own, a guest has only the host as a neighbour.
    yield f"\tip6 saddr {_set([*six, '::', 'fe80::/10'])} accept"
    yield "\tdrop"
    yield "}"


def _chain(guest: Guest) -> str:
    """Return the name of the guest's chain. Characters that nftables does not allow in a name are
    written as numbers.
    """
    return "guest_" + "".join(
        each if each.isalnum() else f"_{ord(each):02x}_" for each in guest.interface
    )


def _daddr(address: str) -> str:
    return f"{'ip6' if ':' in address else 'ip'} daddr {address}"


def _by_version(addresses: Sequence[str]) -> tuple[list[str], list[str]]:
    return [each for each in addresses if "." in each], [each for each in addresses if ":" in each]


def _set(addresses: Sequence[str]) -> str:
    return f"{{ {', '.join(addresses)} }}"


def _numbers(addresses: Sequence[str]) -> str:
    return _set([f"{int(ipaddress.IPv6Address(each)):#034x}" for each in addresses])


def _quoted(names: Sequence[str]) -> str:
    return _set([f'"{each}"' for each in names])
