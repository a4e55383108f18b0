"""This module gives instances their update domain, fault domain and address.

A declaration says how many domains there are and which addresses may be used, but seldom which
instance gets which. An instance keeps the domains and the address that it has. A new instance gets
the domain with the fewest instances of its kind.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from fairwarning.core.model import Instance, InstanceName, Roster
from fairwarning.core.resources import AvailabilitySet, CloudService, Member, VirtualMachine, expand

Known = Mapping[InstanceName, Instance]
"""The live instances, by name."""


def placed_roster(
    resource: VirtualMachine | AvailabilitySet | CloudService,
    before: Roster,
    expanded: Roster | None = None,
) -> Roster:
    """Return the roster to declare for the resource, if its roster is `before` now. Raises Refused
    if the resource breaks a rule. For scale sets use `scale_sets.py`.

    `expanded` is the roster that `expand` makes of the resource, if the caller has it already.
    """
    roster = expand(resource)[0].roster if expanded is None else expanded
    known = {each.name: each for each in before.live}
    instances: Sequence[Instance] = roster.live
    members: Sequence[Member] = ()
    if isinstance(resource, AvailabilitySet):
        members = resource.members
    if isinstance(resource, CloudService):
        instances = with_addresses(instances, known, resource.addresses)
    domains = (roster.update_domains, roster.fault_domains)
    instances = with_domains(instances, known, domains, members)
    return replace(roster, instances={each.name: each for each in instances})


def with_addresses(
    instances: Sequence[Instance], known: Known, addresses: Iterable[str]
) -> tuple[Instance, ...]:
    """Return the instances with one address each. An instance keeps the address that it has; if
    there are too few addresses, the last instances get none.
    """
    free = dict.fromkeys(addresses)
    held: dict[InstanceName, str] = {}
    for each in instances:
        has = known[each.name].addresses if each.name in known else ()
        address = next((address for address in has if address in free), None)
        if address is not None:
            held[each.name] = address
            del free[address]
    rest = iter(free)
    given = ((each, held.get(each.name) or next(rest, None)) for each in instances)
    return tuple(
        replace(each, addresses=() if address is None else (address,)) for each, address in given
    )


def with_domains(
    instances: Sequence[Instance],
    known: Known,
    domains: tuple[int, int],
    members: Iterable[Member] = (),
) -> tuple[Instance, ...]:
    """Return the instances with their update and fault domain. `domains` is the number of both. The
    domain is the one that the member names, else the present one, else the least used one.
    """
    names = [each.name for each in instances]
    update = {name: known[name].update_domain for name in names if name in known}
    fault = {name: known[name].fault_domain for name in names if name in known}
    for member in members:
        name = InstanceName(member.name)
        if member.update_domain is not None:
            update[name] = member.update_domain
        if member.fault_domain is not None:
            fault[name] = member.fault_domain
    update = _spread(names, update, domains[0])
    fault = _spread(names, fault, domains[1])
    return tuple(
        replace(each, update_domain=update[each.name], fault_domain=fault[each.name])
        for each in instances
    )


def _spread(
    names: Iterable[InstanceName], chosen: Mapping[InstanceName, int], count: int
) -> dict[InstanceName, int]:
    places = {name: domain for name, domain in chosen.items() if domain < count}
    sizes: dict[str, list[int]] = defaultdict(lambda: [0] * count)
    for name, domain in places.items():
        sizes[_role(name)][domain] += 1
    for name in names:
        if name not in places:
            own = sizes[_role(name)]
            places[name] = own.index(min(own))
            own[places[name]] += 1
    return places


def _role(name: InstanceName) -> str:
    """Return the role of an instance of a cloud service, or "" for any other instance."""
    role, mark, _ = name.partition("_IN_")
    return role if mark else ""
