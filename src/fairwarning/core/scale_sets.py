"""Scale sets are named, placed, grown and shrunk here, for fleet files, the APIs and `scale`. Pure.

The rules, whoever asks:

- A scale set shrinks from the highest number, or from the last name if it is flexible.
- The numbers of a uniform set are never used again, in none of its placement groups, as in Azure.
  A set that was removed and is declared again is a new one and begins at 0.
- An instance that is about to be deleted does not count, but keeps its place and its address until
  it is gone.
- New instances fill the placement groups in order. One more is opened when a hundred are in each.
- A new instance goes to the update and fault domain that has the fewest, under the latest model.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.core.declare import declared_model
from fairwarning.core.deleting import is_due_terminate, leavers
from fairwarning.core.lifecycle import number_of
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.placement import Known, with_addresses, with_domains
from fairwarning.core.resources import (
    SUFFIX_CHARS,
    Orchestration,
    ScaleSet,
    expand,
    scope_id,
    suffixes_of,
)

Member = tuple[Scope, Instance]


class Growth(NamedTuple):
    """The new instances of a scale set, each with its place."""

    added: tuple[tuple[Scope, tuple[Instance, ...]], ...]
    """Those that go to placement groups that are there."""
    created: tuple[Scope, ...]
    """Further placement groups, with their instances."""


def members(groups: Iterable[Scope]) -> list[Member]:
    """The live instances that are to stay, in order of number, or of name in a flexible set."""
    found = []
    for scope in groups:
        going = leavers(scope)
        found += [(scope, each) for each in scope.roster.live if each.name not in going]
    return sorted(found, key=_order)


def _order(member: Member) -> tuple[int, str]:
    scope, instance = member
    return number_of(scope.roster, instance.name) or 0, instance.name


def next_number(groups: Iterable[Roster]) -> int:
    """The number of the next instance of a uniform set. `groups` are all that the set has."""
    rosters = list(groups)
    if all(each.is_gone for each in rosters):
        return 0
    # A flexible set has used no numbers, and may become uniform while it is empty.
    return max((each.next_number for each in rosters if each.is_numbered), default=0)


def set_id(scope: Scope) -> str:
    """The id of the whole scale set: that of each of its scopes without the placement group."""
    return scope.id.rpartition("/")[0]


def instance_template(groups: Sequence[Scope]) -> Instance:
    """The instance that new ones resemble: the last of the set, even if that one is gone."""
    everyone = [each for scope in groups for each in scope.roster.instances.values()]
    staying = [instance for _, instance in members(groups)]
    return next(iter([*staying[::-1], *everyone[::-1]]), Instance(name=InstanceName("any")))


def new_instances(
    groups: Sequence[Scope],
    number: int,
    *,
    template: Instance,
    addresses: Sequence[str],
    new_id: Callable[[], str],
) -> tuple[Instance, ...]:
    """Name `number` instances that resemble `template`; `grow` then places them.

    Each gets one of the addresses, as long as there are any.
    """
    roster = groups[0].roster
    suffixes = (new_id()[-SUFFIX_CHARS:].lower() for _ in count())
    # Whoever scales a removed set up by its name goes on with it: the core keeps its numbers.
    first = max(each.roster.next_number for each in groups)
    names = _new_names(roster.resource, groups, first if roster.is_numbered else None, suffixes)
    given = chain(((each,) for each in addresses), iter(tuple, None))
    return tuple(
        Instance(
            name=name,
            addresses=next(given),
            tags=template.tags,
            priority=template.priority,
            eviction=template.eviction,
        )
        for name in islice(names, number)
    )


def grow(
    groups: Sequence[Scope],
    arriving: Sequence[Instance],
    *,
    leaving: InstanceName | None = None,
) -> Growth:
    """Give each new instance its placement group and its domains.

    The instance `leaving` makes room in its domains at once, but not yet in its group.
    """
    staying: dict[ScopeId, list[Instance]] = {}
    for scope, instance in members(groups):
        if instance.name != leaving:
            staying.setdefault(scope.id, []).append(instance)
    crowds = _by_group([len(scope.roster.live) for scope in groups], arriving)
    added, created = [], []
    for group, own in crowds.items():
        if group < len(groups):
            scope = groups[group]
            added.append((scope, _with_domains(scope.roster, staying.get(scope.id, []), own)))
        else:
            created.append(_further_group(groups[0], group, own))
    return Growth(tuple(added), tuple(created))


def declared_rosters(
    resource: ScaleSet, groups: Sequence[Scope], *, without_notice: bool = False
) -> dict[ScopeId, Roster]:
    """The roster to declare for each placement group, also for those that are left empty.

    `groups` are all scopes that this scale set has now, in order. An instance that is left out
    and is due a Terminate event, which the core then announces, keeps its address until that is
    over, unless `without_notice`. Raises Refused if the resource breaks a rule.
    """
    before = {_group_of(scope.id): scope.roster for scope in groups}
    first_number = next_number(before.values())
    fresh = expand(resource, first_number=first_number)
    template = fresh[0].roster
    going = {_group_of(scope.id): _going(scope) for scope in groups}
    own: dict[int, list[Instance]] = {}
    for scope, instance in members(groups)[: resource.capacity]:
        own.setdefault(_group_of(scope.id), []).append(instance)
    warned = [] if without_notice else _warned(groups, own, going)
    if own or warned or any(going.values()):
        # A further group is of the model of the others, which says more than the file does.
        first = min(group for group, roster in before.items() if roster.live)
        model = declared_model(before[first], template)
        prefix = before[first].computer_name_prefix
        template = replace(template, model=model, computer_name_prefix=prefix)
        _fill(own, resource, groups, going, Instance(name=InstanceName("any"), model=model))
    else:
        own = {_group_of(scope.id): [*scope.roster.live] for scope in fresh}
    known = {each.name: each for roster in before.values() for each in roster.live}
    own = _equipped(own, known, resource, [*warned, *chain(*going.values())])
    is_new = all(roster.is_gone for roster in before.values())
    rosters = {}
    for group in sorted({*before, *own}):
        id = scope_id(resource.place, ScopeKind.SCALE_SET, resource.name, group)
        used = 0
        # What a flexible set has counted are no numbers of a uniform one.
        if group in before and not is_new and before[group].is_numbered == template.is_numbered:
            used = before[group].next_number
        rosters[id] = _roster(template, own.get(group, ()), going.get(group, ()), known, used)
    return rosters


def _group_of(id: ScopeId) -> int:
    return int(id.rpartition("/")[2])


def _going(scope: Scope) -> tuple[Instance, ...]:
    names = leavers(scope)
    return tuple(each for each in scope.roster.live if each.name in names)


def _warned(
    groups: Sequence[Scope],
    own: Mapping[int, Sequence[Instance]],
    going: Mapping[int, Sequence[Instance]],
) -> list[Instance]:
    """The instances that are left out now and stay until their Terminate event is over."""
    staying = {each.name for some in (*own.values(), *going.values()) for each in some}
    return [
        each
        for scope in groups
        for each in scope.roster.live
        if each.name not in staying and is_due_terminate(scope, each)
    ]


def _fill(
    own: dict[int, list[Instance]],
    resource: ScaleSet,
    groups: Sequence[Scope],
    going: Mapping[int, Sequence[Instance]],
    template: Instance,
) -> None:
    """Add instances until there are as many as the resource says."""
    is_uniform = resource.orchestration is Orchestration.UNIFORM
    first = next_number(each.roster for each in groups) if is_uniform else None
    suffixes = chain(resource.suffixes, suffixes_of(resource.name))
    missing = resource.capacity - sum(map(len, own.values()))
    names = islice(_new_names(resource.name, groups, first, suffixes), missing)
    last = max([*own, *going])
    sizes = [len(own.get(at, ())) + len(going.get(at, ())) for at in range(last + 1)]
    arriving = [replace(template, name=name) for name in names]
    for group, some in _by_group(sizes, arriving).items():
        own.setdefault(group, []).extend(some)


def _new_names(
    resource: str, groups: Iterable[Scope], first: int | None, suffixes: Iterable[str]
) -> Iterator[InstanceName]:
    """Endless names: numbers from `first` on, or the suffixes of a flexible set that are free."""
    if first is not None:
        for number in count(first):
            yield InstanceName(f"{resource}_{number}")
    used = {name for each in groups for name in each.roster.instances}
    for suffix in suffixes:
        name = InstanceName(f"{resource}_{suffix}")
        if name not in used:
            used.add(name)
            yield name


def _by_group(sizes: Sequence[int], arriving: Sequence[Instance]) -> dict[int, list[Instance]]:
    """The new instances of each placement group; `sizes` says how many are in each now."""
    found: dict[int, list[Instance]] = {}
    rest = list(arriving)
    for group in count():
        if not rest:
            return found
        room = max(0, SCOPE_INSTANCES_MAX - (sizes[group] if group < len(sizes) else 0))
        if room:
            found[group], rest = rest[:room], rest[room:]
    raise AssertionError("unreachable")


def _with_domains(
    roster: Roster, staying: Sequence[Instance], own: Sequence[Instance]
) -> tuple[Instance, ...]:
    known = {each.name: each for each in staying}
    domains = (roster.update_domains, roster.fault_domains)
    return with_domains([*staying, *own], known, domains)[len(staying) :]


def _further_group(first: Scope, number: int, own: Sequence[Instance]) -> Scope:
    """A placement group under the same rules and with the same model."""
    roster = replace(first.roster, instances={}, next_number=0, is_removed=False)
    everyone = [replace(each, model=roster.model) for each in _with_domains(roster, (), own)]
    return Scope(
        id=ScopeId(f"{set_id(first)}/{number}"),
        roster=replace(
            roster,
            instances={each.name: each for each in everyone},
            next_number=_after_last(roster, everyone, 0),
        ),
    )


def _equipped(
    own: Mapping[int, Sequence[Instance]],
    known: Known,
    resource: ScaleSet,
    leaving: Iterable[Instance],
) -> dict[int, list[Instance]]:
    """Addresses belong to the whole set, so they are handed out over all its groups at once."""
    everyone = [
        replace(each, tags=resource.tags, priority=resource.priority, eviction=resource.eviction)
        for _, some in sorted(own.items())
        for each in some
    ]
    held = {address for each in leaving for address in each.addresses}
    free = [address for address in resource.addresses if address not in held]
    ready = {each.name: each for each in with_addresses(everyone, known, free)}
    return {group: [ready[each.name] for each in some] for group, some in own.items()}


def _roster(
    template: Roster,
    own: Sequence[Instance],
    going: Sequence[Instance],
    known: Known,
    used: int,
) -> Roster:
    """An instance that is going makes room in its domains already, so it is placed apart."""
    domains = (template.update_domains, template.fault_domains)
    everyone = (*with_domains(own, known, domains), *with_domains(going, known, domains))
    return replace(
        template,
        next_number=_after_last(template, everyone, used),
        instances={each.name: each for each in everyone},
    )


def _after_last(roster: Roster, instances: Iterable[Instance], used: int) -> int:
    numbers = (number_of(roster, each.name) for each in instances)
    return max([used, *(number + 1 for number in numbers if number is not None)])
