"""Who is in a scale set, who goes when it shrinks, and where newcomers live when it grows. Pure.

A uniform scale set counts its instances through all its placement groups, and a number is
given out once. A placement group holds a hundred; one more is opened when all are full, and
those who are about to be deleted need their place until they are gone.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.core.deleting import leavers
from fairwarning.core.lifecycle import number_of
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Scope, ScopeId
from fairwarning.fleet_file.placement import placed

SUFFIX_CHARS = 8

Member = tuple[Scope, Instance]


class Growth(NamedTuple):
    added: tuple[tuple[Scope, tuple[Instance, ...]], ...]
    """To placement groups that are there."""
    created: tuple[Scope, ...]
    """Further placement groups."""


def members(groups: Sequence[Scope]) -> list[Member]:
    """Live and to stay, in order of number, or of name in a flexible set."""
    found = []
    for scope in groups:
        going = leavers(scope)
        found += [(scope, each) for each in scope.roster.live if each.name not in going]
    return sorted(found, key=_order)


def _order(member: Member) -> tuple[int, str]:
    scope, instance = member
    return number_of(scope.roster, instance.name) or 0, instance.name


def likeness(groups: Sequence[Scope]) -> Instance:
    """One to make others like: who came last, even if that one is gone."""
    everyone = [each for scope in groups for each in scope.roster.instances.values()]
    stays = [instance for _, instance in members(groups)]
    return next(iter([*stays[::-1], *everyone[::-1]]), Instance(name=InstanceName("any")))


def newcomers(
    groups: Sequence[Scope],
    number: int,
    *,
    pattern: Instance,
    addresses: Sequence[str],
    new_id: Callable[[], str],
) -> tuple[Instance, ...]:
    """So many, like the pattern, with an address each as far as there are any; not yet placed."""
    given = chain(((each,) for each in addresses), iter(tuple, None))
    return tuple(
        Instance(
            name=name,
            addresses=next(given),
            tags=pattern.tags,
            priority=pattern.priority,
            eviction=pattern.eviction,
        )
        for name in islice(_new_names(groups, new_id), number)
    )


def _new_names(groups: Sequence[Scope], new_id: Callable[[], str]) -> Iterator[InstanceName]:
    roster = groups[0].roster
    if roster.is_numbered:
        for number in count(max(each.roster.next_number for each in groups)):
            yield InstanceName(f"{roster.resource}_{number}")
    used = {name for each in groups for name in each.roster.instances}
    while True:
        name = InstanceName(f"{roster.resource}_{new_id()[-SUFFIX_CHARS:].lower()}")
        if name not in used:
            used.add(name)
            yield name


def grown(
    groups: Sequence[Scope],
    arriving: Sequence[Instance],
    *,
    leaving: InstanceName | None = None,
) -> Growth:
    """Who goes where. Whoever is leaving makes room in its domains, but not yet in its group."""
    staying: dict[ScopeId, list[Instance]] = {}
    for scope, instance in members(groups):
        if instance.name != leaving:
            staying.setdefault(scope.id, []).append(instance)
    added, rest = [], list(arriving)
    for scope in groups:
        room = max(0, SCOPE_INSTANCES_MAX - len(scope.roster.live))
        own, rest = rest[:room], rest[room:]
        if own:
            added.append((scope, _spread(scope, staying.get(scope.id, []), own)))
    crowds = [
        rest[at : at + SCOPE_INSTANCES_MAX] for at in range(0, len(rest), SCOPE_INSTANCES_MAX)
    ]
    created = [_further(groups[0], len(groups) + at, crowd) for at, crowd in enumerate(crowds)]
    return Growth(tuple(added), tuple(created))


def _spread(
    scope: Scope, staying: Sequence[Instance], own: Sequence[Instance]
) -> tuple[Instance, ...]:
    """In turn over the domains, beginning where the fewest are."""
    roster = scope.roster
    known = {each.name: each for each in staying}
    domains = (roster.update_domains, roster.fault_domains)
    return placed([*staying, *own], known, domains)[len(staying) :]


def _further(first: Scope, number: int, own: Sequence[Instance]) -> Scope:
    """A placement group under the same rules and with the same model."""
    roster = replace(first.roster, instances={}, next_number=0, is_removed=False)
    numbers = [number_of(roster, each.name) for each in own]
    living = [replace(each, model=roster.model) for each in _spread(first, (), own)]
    return Scope(
        id=ScopeId(f"{set_id(first)}/{number}"),
        roster=replace(
            roster,
            instances={each.name: each for each in living},
            next_number=max((n + 1 for n in numbers if n is not None), default=0),
        ),
    )


def set_id(scope: Scope) -> str:
    """Of the whole scale set: its scopes' ids without the placement group."""
    return scope.id.rpartition("/")[0]
