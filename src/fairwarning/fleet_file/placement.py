"""A declaration meets what is there: whoever lives keeps the place and the address that he has.

A file says how many domains there are and which addresses may be used, and seldom who gets
which. So what was given out once stays, and only newcomers are placed: in the domain that has
the fewest of their peers.
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
"""Who lives now."""


def settled(resource: VirtualMachine | AvailabilitySet | CloudService, before: Roster) -> Roster:
    """The roster to declare where `before` is now. Raises Refused if the resource is no good."""
    (scope,) = expand(resource)
    roster = scope.roster
    known = {each.name: each for each in before.live}
    instances: Sequence[Instance] = roster.live
    given: Sequence[Member] = ()
    if isinstance(resource, AvailabilitySet):
        given = resource.members
    if isinstance(resource, CloudService):
        instances = with_addresses(instances, known, resource.addresses)
    instances = placed(instances, known, (roster.update_domains, roster.fault_domains), given)
    return replace(roster, instances={each.name: each for each in instances})


def with_addresses(
    instances: Sequence[Instance], known: Known, addresses: Iterable[str]
) -> tuple[Instance, ...]:
    """One address each. Those that are given out already stay where they are."""
    free = dict.fromkeys(addresses)
    held: dict[InstanceName, str] = {}
    for each in instances:
        has = known[each.name].addresses if each.name in known else ()
        address = next((address for address in has if address in free), None)
        if address is not None:
            held[each.name] = address
            del free[address]
    rest = iter(free)
    return tuple(
        replace(each, addresses=_one(held.get(each.name) or next(rest, None))) for each in instances
    )


def _one(address: str | None) -> tuple[str, ...]:
    return () if address is None else (address,)


def placed(
    instances: Sequence[Instance],
    known: Known,
    domains: tuple[int, int],
    given: Iterable[Member] = (),
) -> tuple[Instance, ...]:
    """What a member says of its place comes first, then where it is, then where there is room."""
    names = [each.name for each in instances]
    update = {name: known[name].update_domain for name in names if name in known}
    fault = {name: known[name].fault_domain for name in names if name in known}
    for member in given:
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
    crowds: dict[str, list[int]] = defaultdict(lambda: [0] * count)
    for name, domain in places.items():
        crowds[_role(name)][domain] += 1
    for name in names:
        if name not in places:
            crowd = crowds[_role(name)]
            places[name] = crowd.index(min(crowd))
            crowd[places[name]] += 1
    return places


def _role(name: InstanceName) -> str:
    """Each role of a cloud service is spread for itself; elsewhere all are peers."""
    role, mark, _ = name.partition("_IN_")
    return role if mark else ""
