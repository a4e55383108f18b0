"""Instances get their update domain, fault domain and address here. Pure.

A declaration says how many domains there are and which addresses may be used, and seldom which
instance gets which. So an instance keeps the place and the address that it has, and a new one goes
to the domain that has the fewest of its peers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from fairwarning.core.model import Instance, InstanceName, Roster
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Member,
    VirtualMachine,
    expand,
)

Known = Mapping[InstanceName, Instance]
"""The instances that live now, by name."""


def placed_roster(
    resource: VirtualMachine | AvailabilitySet | CloudService, before: Roster
) -> Roster:
    """The roster to declare for the resource where `before` is now.

    Raises Refused if the resource breaks a rule. Scale sets are in `scale_sets.py`.
    """
    (scope,) = expand(resource)
    roster = scope.roster
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
    """Give each instance one address; an address that an instance has already stays with it."""
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
    """Give each instance its update and fault domain, of which there are `domains`.

    What a member says of its place comes first, then where the instance is, then where there is
    room.
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
    """Each role of a cloud service is spread for itself; elsewhere all instances are peers."""
    role, mark, _ = name.partition("_IN_")
    return role if mark else ""
