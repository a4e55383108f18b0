"""A scale set that grows and shrinks over its placement groups.

Who lives stays. It shrinks from the highest number, or the last name if it is flexible, and
grows with numbers that none of its groups has used since it was last empty. Whoever is about
to be deleted does not count, and keeps its place and its address until it is gone; so does
who is left out here and is due a Terminate event, which the core then announces.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice

from msgspec.structs import replace

from fairwarning.core.declare import declared_model
from fairwarning.core.deleting import is_due_terminate, leavers
from fairwarning.core.lifecycle import number_of
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import (
    Instance,
    InstanceName,
    Model,
    Roster,
    Scope,
    ScopeId,
    ScopeKind,
)
from fairwarning.core.resources import (
    Orchestration,
    ScaleSet,
    expand,
    scope_id,
    suffixes_of,
)
from fairwarning.fleet_file.placement import Known, placed, with_addresses

Going = Mapping[int, Sequence[Instance]]
"""Who is about to be deleted, by placement group."""


def scaled(
    resource: ScaleSet, groups: Sequence[Scope], *, without_notice: bool = False
) -> dict[ScopeId, Roster]:
    """The roster of each placement group, of those that are left empty too.

    `groups` are all scopes of this scale set that there are. Raises Refused if the resource is
    no good.
    """
    fresh = expand(resource)
    before = {_group(scope.id): scope.roster for scope in groups}
    template = fresh[0].roster
    going = {_group(scope.id): _going(scope) for scope in groups}
    members = _survivors(resource, before, going)
    warned = [] if without_notice else _warned(groups, members, going)
    if members or warned or any(going.values()):
        # A further group is of the model of the others, which says more than the file does.
        first = min(group for group, roster in before.items() if roster.live)
        model = declared_model(before[first], template)
        prefix = before[first].computer_name_prefix
        template = replace(template, model=model, computer_name_prefix=prefix)
        _grow(members, resource, before, going, model)
    else:
        members = {_group(scope.id): [*scope.roster.live] for scope in fresh}
    known = {each.name: each for roster in before.values() for each in roster.live}
    members = _equipped(members, known, resource, [*warned, *chain(*going.values())])
    rosters = {}
    for group in sorted({*before, *members}):
        id = scope_id(resource.place, ScopeKind.SCALE_SET, resource.name, group)
        rosters[id] = _roster(template, members.get(group, ()), going.get(group, ()), known)
    return rosters


def next_number(groups: Iterable[Roster]) -> int:
    """The number of the next instance of a uniform scale set; `groups` are all it has."""
    return max((each.next_number for each in groups if each.live), default=0)


def _group(id: ScopeId) -> int:
    return int(id.rpartition("/")[2])


def _going(scope: Scope) -> tuple[Instance, ...]:
    names = leavers(scope)
    return tuple(each for each in scope.roster.live if each.name in names)


def _warned(
    groups: Sequence[Scope], members: Mapping[int, Sequence[Instance]], going: Going
) -> list[Instance]:
    """Who is left out now and stays until its Terminate event is over."""
    staying = {each.name for own in (*members.values(), *going.values()) for each in own}
    return [
        each
        for scope in groups
        for each in scope.roster.live
        if each.name not in staying and is_due_terminate(scope, each)
    ]


def _survivors(
    resource: ScaleSet, before: Mapping[int, Roster], going: Going
) -> dict[int, list[Instance]]:
    live = [
        (group, each)
        for group, roster in sorted(before.items())
        for each in roster.live
        if each not in going[group]
    ]
    if resource.orchestration is Orchestration.UNIFORM:
        live.sort(key=lambda each: number_of(before[each[0]], each[1].name) or 0)
    members: dict[int, list[Instance]] = {}
    for group, instance in live[: resource.capacity]:
        members.setdefault(group, []).append(instance)
    return members


def _grow(
    members: dict[int, list[Instance]],
    resource: ScaleSet,
    before: Mapping[int, Roster],
    going: Going,
    model: Model,
) -> None:
    missing = resource.capacity - sum(map(len, members.values()))
    group = 0
    for name in islice(_new_names(resource, before), missing):
        while len(members.get(group, ())) + len(going.get(group, ())) >= SCOPE_INSTANCES_MAX:
            group += 1
        members.setdefault(group, []).append(Instance(name=name, model=model))


def _new_names(resource: ScaleSet, before: Mapping[int, Roster]) -> Iterator[InstanceName]:
    if resource.orchestration is Orchestration.UNIFORM:
        for number in count(next_number(before.values())):
            yield InstanceName(f"{resource.name}_{number}")
    used = {name for roster in before.values() for name in roster.instances}
    for suffix in chain(resource.suffixes, suffixes_of(resource.name)):
        name = InstanceName(f"{resource.name}_{suffix}")
        if name not in used:
            used.add(name)
            yield name


def _equipped(
    members: Mapping[int, Sequence[Instance]],
    known: Known,
    resource: ScaleSet,
    leaving: Iterable[Instance],
) -> dict[int, list[Instance]]:
    """Addresses belong to the whole set, so they are handed out over all its groups at once."""
    everyone = [
        replace(each, tags=resource.tags, priority=resource.priority, eviction=resource.eviction)
        for _, own in sorted(members.items())
        for each in own
    ]
    held = {address for each in leaving for address in each.addresses}
    free = [address for address in resource.addresses if address not in held]
    ready = {each.name: each for each in with_addresses(everyone, known, free)}
    return {group: [ready[each.name] for each in own] for group, own in members.items()}


def _roster(
    template: Roster, members: Sequence[Instance], going: Sequence[Instance], known: Known
) -> Roster:
    """Whoever is going makes room in its domains already."""
    domains = (template.update_domains, template.fault_domains)
    everyone = (*placed(members, known, domains), *placed(going, known, domains))
    numbers = (number_of(template, each.name) for each in everyone)
    return replace(
        template,
        next_number=max((number + 1 for number in numbers if number is not None), default=0),
        instances={each.name: each for each in everyone},
    )
