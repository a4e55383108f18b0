"""Reads a network file. It says on which networks the instances are, at which port each is
plugged in, and which hardware and IP addresses are its own.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from urllib.parse import urlsplit

from fairwarning.common.text_files import read_text
from fairwarning.common.toml_lines import Path
from fairwarning.common.toml_table import BadFile, Mistake, TomlTable, with_lines
from fairwarning.common.toml_text import NotToml, parse_toml

ENDPOINT = "169.254.169.254"
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_INTERFACE = re.compile(r"[A-Za-z0-9._@-]{1,15}")
"""Linux allows more letters, but these need no quoting in nftables, dnsmasq or a shell."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_INSTANCE = re.compile(r"[A-Za-z0-9._/-]{1,200}")
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,200}|/[^\0]{1,4000}")
_GROUP_BIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One instance on a network."""

    instance: str
    """Its name in the fleet, or SET/NAME if two sets have an instance of this name."""
    addresses: tuple[str, ...] = ()
    """Its IP addresses on this network. Without any, the fleet's are taken."""
    interface: str = ""
    """The host's end of its network card, such as `vnet3`."""
    mac: str = ""
    """The hardware address of its network card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Instances that share a bridge, a network namespace or a way of routing."""

    name: str
    guests: tuple[Guest, ...]
    bridge: str = ""
    """The bridge that the guests are plugged into. Without one, each has a routed link."""
    namespace: str = ""
    """The network namespace in which the proxy listens; a name of `ip netns`, or a path."""
    listen: tuple[str, int] = (ENDPOINT, 80)
    router: str = ""
    """The guests' default router, which is also their way to the endpoint."""
    option_245: str = ENDPOINT
    """The address that DHCP option 245 names."""

    @property
    def endpoint(self) -> str:
        return self.listen[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFile:
    networks: tuple[Network, ...]
    server: str = ""
    """The URL of the metadata endpoint to which a proxy sends requests."""


def read_file(path: FilePath | str) -> NetworkFile:
    """Read the file. Raises BadFile with all its mistakes, or OSError if it can't be read."""
    return parse_network_file(read_text(path))


def parse_network_file(text: str) -> NetworkFile:
    """Return what the text says. Raises BadFile with all its mistakes."""
    try:
        text, raw = parse_toml(text)
    except NotToml as problem:
        raise BadFile([Mistake(line=problem.line, message=problem.message)]) from None
    mistakes: list[tuple[Path, str]] = []
    table = TomlTable(raw, (), mistakes)
    server = _server(table)
    tables = table.tables("network")
    networks = tuple(_network(each) for each in tables)
    if not networks and not mistakes:
        table.wrong(None, "there is no network; add a [[network]] with its guests")
    table.close()
    _refuse_doubles(tables, networks)
    if mistakes:
        raise BadFile(with_lines(mistakes, text))
    return NetworkFile(networks=networks, server=server)


def with_fleet_addresses(file: NetworkFile, known: dict[str, tuple[str, ...]]) -> NetworkFile:
    """Return the file with the fleet's addresses for the guests that have none in the file."""
    return replace(
        file,
        networks=tuple(
            replace(
                network,
                guests=tuple(
                    guest
                    if guest.addresses
                    else replace(guest, addresses=known.get(guest.instance, ()))
                    for guest in network.guests
                ),
            )
            for network in file.networks
        ),
    )


def _server(table: TomlTable) -> str:
    value = table.text("server")
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        is_good = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.path not in ("", "/") or parts.query or "@" in parts.netloc:
        table.wrong("server", "`server` is the endpoint's URL, such as http://10.9.0.1:80")
        return ""
    return value.rstrip("/")


def _network(table: TomlTable) -> Network:
    network = Network(
        name=_matching(table, "name", _NAME, "up to 32 letters, digits, - and _", needed=True),
        bridge=_matching(table, "bridge", _INTERFACE, "the name of an interface"),
        namespace=_matching(table, "namespace", _NAMESPACE, "a name of `ip netns`, or a path"),
        listen=_listen(table),
        router=_address(table, "router", ""),
        option_245=_address(table, "option_245", ENDPOINT),
        guests=tuple(_guest(each) for each in table.tables("guests")),
    )
    table.close()
    if network.name and not network.guests:
        table.wrong(None, f"network {network.name!r} has no guests; list them in `guests`")
    return network


def _guest(table: TomlTable) -> Guest:
    found = []
    for address in table.texts("addresses"):
        try:
            found.append(_without_zone(address))
        except ValueError:
            table.wrong("addresses", f"{address!r} is no IP address")
    mac = _matching(table, "mac", _MAC, "a hardware address such as 52:54:00:12:34:56")
    if mac and int(mac[:2], 16) & _GROUP_BIT:
        table.wrong("mac", f"{mac} is the address of a group, not of a network card")
    guest = Guest(
        instance=_matching(table, "instance", _INSTANCE, "a name, or SET/NAME", needed=True),
        addresses=tuple(dict.fromkeys(found)),
        interface=_matching(table, "interface", _INTERFACE, "the name of an interface"),
        mac=mac,
    )
    table.close()
    return guest


def _matching(
    table: TomlTable, key: str, pattern: re.Pattern[str], what: str, *, needed: bool = False
) -> str:
    value = table.text(key, needed=needed)
    value = value.lower() if pattern is _MAC else value
    if value and not pattern.fullmatch(value):
        table.wrong(key, f"`{key}` must be {what}, not {value[:80]!r}")
        return ""
    return value


def _without_zone(text: str) -> str:
    """Return the address as it is usually written. Raises ValueError if it is none, or has a zone.
    Python allows every character in a zone, and the rules would contain it.
    """
    if "%" in text:
        raise ValueError(text)
    return str(ipaddress.ip_address(text))


def _listen(table: TomlTable) -> tuple[str, int]:
    value = table.text("listen", f"{ENDPOINT}:80")
    host, _, port = value.rpartition(":")
    try:
        address = _without_zone(host.strip("[]"))
        if port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16:
            return address, int(port)
    except ValueError:
        pass
    table.wrong("listen", f"`listen` is ADDRESS:PORT such as {ENDPOINT}:80")
    return ENDPOINT, 80


def _address(table: TomlTable, key: str, default: str) -> str:
    value = table.text(key, default)
    try:
        return str(ipaddress.IPv4Address(value)) if value else ""
    except ValueError:
        table.wrong(key, f"`{key}` must be an IPv4 address, not {value[:80]!r}")
        return default


def _refuse_doubles(tables: Iterable[TomlTable], networks: Iterable[Network]) -> None:
    """Note what occurs twice: rules or leases for it would contradict each other."""
    names: set[str] = set()
    interfaces: dict[str, str] = {}
    places: set[tuple[str, tuple[str, int]]] = set()
    for table, network in zip(tables, networks, strict=True):
        if network.name in names:
            table.wrong("name", f"two networks are called {network.name!r}; rename one")
        names.add(network.name)
        if network.namespace and (network.namespace, network.listen) in places:
            table.wrong("namespace", "two networks listen at the same address and namespace")
        places.add((network.namespace, network.listen))
        own: dict[str, str] = {}
        for guest in network.guests:
            if guest.interface and guest.interface in interfaces:
                other = interfaces[guest.interface]
                table.wrong("guests", f"{guest.interface} belongs to {other} and {guest.instance}")
            interfaces[guest.interface] = guest.instance
            for address in (*guest.addresses, *([guest.mac] if guest.mac else ())):
                if address in own:
                    table.wrong(
                        "guests", f"{address} belongs to {own[address]} and {guest.instance}"
                    )
                own[address] = guest.instance
