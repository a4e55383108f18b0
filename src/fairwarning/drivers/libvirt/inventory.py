"""Writes a fleet file from the domains of a hypervisor, and says what it could not know."""

import ipaddress
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from fairwarning.core.refusals import Refused
from fairwarning.core.roster import refuse_name


class Guest(Struct, frozen=True, kw_only=True):
    """A domain, with the addresses that the guest agent or the DHCP leases name."""

    name: str
    uuid: str
    addresses: tuple[str, ...] = ()


def fleet_text(uri: str, guests: Sequence[Guest]) -> tuple[str, list[str]]:
    """Return the text of a fleet file, and what is to be filled in or checked by hand."""
    unknown: list[str] = []
    names = _names(guests, unknown)
    owners = Counter(address for guest in guests for address in set(_usable(guest.addresses)))
    parts = [
        f'driver = {{ type = "libvirt", uri = {_text(uri)} }}\n',
    ]
    for guest in sorted(guests, key=lambda each: names[each.uuid]):
        name = names[guest.uuid]
        lines = ["[[vm]]", f"name = {_text(name)}"]
        own = [each for each in _usable(guest.addresses) if owners[each] == 1]
        shared = [each for each in _usable(guest.addresses) if owners[each] > 1]
        if own:
            lines.append(f"addresses = [{', '.join(_text(each) for each in own)}]")
        else:
            lines.append("# addresses = []   # not known; without one it is not recognised")
            unknown.append(f"{name}: no address is known; neither its agent nor a lease has one")
        unknown += [f"{name}: {each} belongs to another domain too" for each in shared]
        if guest.name != name:
            # No handle has a space, because drivers put spaces between handles.
            handle = guest.uuid if re.search(r"\s", guest.name) else guest.name
            lines.append(f"handle = {_text(handle)}")
        parts.append("\n".join(lines) + "\n")
    if guests:
        unknown.append(
            "availability sets, scale sets and update domains: libvirt has none, so each domain is "
            "a VM of its own"
        )
    return "\n".join(parts), unknown


def _names(guests: Iterable[Guest], unknown: list[str]) -> dict[str, str]:
    """Return the instance's name for each UUID. It is the domain's name if that is allowed."""
    names: dict[str, str] = {}
    for guest in guests:
        name = guest.name
        try:
            refuse_name(name)
        except Refused:
            name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:48].rstrip("-.")
            name = name or f"domain-{guest.uuid[:8]}"
        if name.lower() in {each.lower() for each in names.values()}:
            name = f"{name}-{guest.uuid[:8]}"
        if name != guest.name:
            unknown.append(f"{name}: no instance can be called {guest.name!r}, so choose a name")
        names[guest.uuid] = name
    return names


def _usable(addresses: Iterable[str]) -> list[str]:
    """Return the addresses that can tell an instance from others, each once and in order."""
    parsed = (ipaddress.ip_address(each) for each in addresses)
    usable = (str(each) for each in parsed if not each.is_loopback and not each.is_link_local)
    return list(dict.fromkeys(usable))


def _text(value: str) -> str:
    """A string of JSON without other escapes is also one of TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
