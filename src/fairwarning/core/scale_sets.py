"""This module names, places, grows and shrinks scale sets, for fleet files, the APIs and `scale`.

The same rules apply to all of them:

- A scale set shrinks from the highest number, or from the last name if it is flexible. Instances
  that are protected from scale-in stay.
- The number of an instance of a uniform set is never used again in the set, as in Azure.
  A set that was removed and is declared again is a new set, and its numbers begin at 0.
- An instance that is being deleted does not count towards the capacity, but keeps its place and
  its address until it is deleted.
- New instances fill the placement groups in order. If each group has a hundred, a new one is made.
- A new instance gets the latest model, and the update and fault domain with the fewest instances.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import NamedTuple

from msgspec.structs import replace

from fairwarning.core import resources
from fairwarning.core.declare import declared_model
from fairwarning.core.lifecycle import number_of
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.pending_deletions import is_due_terminate, leavers
from fairwarning.core.placement import Known, with_addresses, with_domains
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import ScaleSet

Member = tuple[Scope, Instance]
NAMES_SHOWN_MAX = 5


class Growth(NamedTuple):
    """The result of `grow`: the placement groups with their new instances."""

    added: tuple[tuple[Scope, tuple[Instance, ...]], ...]
    """The existing placement groups that get new instances, with these instances."""
    created: tuple[Scope, ...]
    """The new placement groups. They contain their instances."""


def members(groups: Iterable[Scope]) -> list[Member]:
    """Return the live instances that are not being deleted, sorted by number or by name."""
    found = []
    for scope in groups:
        going = leavers(scope)
        found += [(scope, each) for each in scope.roster.live if each.name not in going]
    return sorted(found, key=_order)


def _order(member: Member) -> tuple[int, str]:
    scope, instance = member
    return number_of(scope.roster, instance.name) or 0, instance.name


def leavers_to(groups: Sequence[Scope], capacity: int) -> list[Member]:
    """Return the members that go if the set shrinks to `capacity`, which are the last ones that are
    not protected from scale-in. Raises Refused if too many are protected.
    """
    present = members(groups)
    surplus = len(present) - capacity
    if surplus <= 0:
        return []
    free = [member for member in present if not member[1].protected_from]
    if surplus > len(free):
        kept = [each.name for _, each in present if each.protected_from]
        raise Refused(
            Code.INSTANCE_PROTECTED,
            f"scale set {groups[0].roster.resource!r} cannot shrink to {capacity}: {len(kept)} of "
            f"its instances are protected from scale-in ({', '.join(kept[:NAMES_SHOWN_MAX])}); end "
            "their protection, or delete them by name",
        )
    return free[len(free) - surplus :]


def next_number(groups: Iterable[Roster]) -> int:
    """Return the number of the next instance of a uniform set that has these placement groups."""
    rosters = list(groups)
    if all(each.is_gone for each in rosters):
        return 0
    # A flexible set has used no numbers, and may become uniform while it is empty.
    return max((each.next_number for each in rosters if each.is_numbered), default=0)


def set_id(scope: Scope) -> str:
    """Return the id of the whole scale set: a scope's id without the placement group."""
    return scope.id.rpartition("/")[0]


def instance_template(groups: Sequence[Scope]) -> Instance:
    """Return the instance that new ones resemble: the last of the set, or the last deleted one."""
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
    """Return `number` new instances that resemble `template`. `grow` then places them. Each gets
    one of `addresses`. If there are too few, the last instances get none.
    """
    roster = groups[0].roster
    suffixes = (new_id()[-resources.SUFFIX_CHARS :].lower() for _ in count())
    # A placement group that was removed on its own has used numbers of the set too.
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
    groups: Sequence[Scope], arriving: Sequence[Instance], *, leaving: InstanceName | None = None
) -> Growth:
    """Give each new instance its placement group and its domains. The instance `leaving` no longer
    counts in its domains, but still counts in its group.
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
    """Return the roster to declare for each placement group, including groups that become empty.

    `groups` are all present scopes of this scale set, in order. An instance that is left out and is
    due a Terminate event keeps its address until that event is over, unless `without_notice` is
    set. Raises Refused if the resource breaks a rule.
    """
    before = {_group_of(scope.id): scope.roster for scope in groups}
    first_number = next_number(before.values())
    fresh = resources.expand(resource, first_number=first_number)
    template = fresh[0].roster
    going = {_group_of(scope.id): _going(scope) for scope in groups}
    own: dict[int, list[Instance]] = {}
    going_now = {instance.name for _, instance in leavers_to(groups, resource.capacity)}
    for scope, instance in members(groups):
        if instance.name not in going_now:
            own.setdefault(_group_of(scope.id), []).append(instance)
    warned = [] if without_notice else _warned(groups, own, going)
    if any(roster.is_standing for roster in before.values()):
        # A new group gets the model of the other groups, which has more settings than the file.
        first = min(before, key=lambda group: (not before[group].live, group))
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
        id = resources.scope_id(resource.place, ScopeKind.SCALE_SET, resource.name, group)
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
    """Return the instances that are left out now and stay until their Terminate event is over."""
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
    """Add instances to `own` until there are as many as the capacity of the resource."""
    is_uniform = resource.orchestration is resources.Orchestration.UNIFORM
    first = next_number(each.roster for each in groups) if is_uniform else None
    suffixes = chain(resource.suffixes, resources.suffixes_of(resource.name))
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
    """Yield new names: with numbers from `first` on, or with unused suffixes if `first` is None."""
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
    """Return the new instances of each placement group. `sizes` has the groups' present sizes."""
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
    """Return a new placement group with the rules and the model of `first`."""
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
    """Return the instances with tags, priority, eviction and addresses. Addresses are given out
    over all groups at once, because they belong to the whole set.
    """
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
    template: Roster, own: Sequence[Instance], going: Sequence[Instance], known: Known, used: int
) -> Roster:
    """Return the roster of one group. Instances in `going` no longer count in their domains."""
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
