"""This module plans the changes that turn the present fleet into the fleet that is wanted.

Theory of operation. Each scope is changed in one transaction, so a plan is a list of steps: first
the existing scopes, each with its whole roster, then the new scopes. An address may move from one
scope to another, so the scope that gives it up comes first. Scopes that exchange addresses give
them up in an extra step. If applying a plan is interrupted, planning and applying again completes
it. A file never removes resources that were not declared by a file (`origin`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from fairwarning.core.declare import Names, leaving, refuse_declaration
from fairwarning.core.model import Instance, InstanceName, Roster, Scope, ScopeId, ScopeKind
from fairwarning.core.pending_deletions import leavers, stayers
from fairwarning.core.placement import placed_roster
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Resource,
    ScaleSet,
    VirtualMachine,
    expand,
)
from fairwarning.core.roster import resource_key
from fairwarning.core.scale_sets import declared_rosters
from fairwarning.fleet_file.model import Fleet, FleetChange, Plan, Step
from fairwarning.fleet_file.partial_declaration import completed, kept, stands
from fairwarning.fleet_file.plan_summary import (
    changes_of,
    changes_of_empty_set,
    changes_of_new,
    shared_names,
)

PRUNED_ORIGINS = frozenset({"file", "starter"})
CONFIRMATION_CHARS = 16  # 64 bits: two previews never have the same text by accident.
_KINDS: Mapping[type[Resource], ScopeKind] = {
    VirtualMachine: ScopeKind.VM,
    AvailabilitySet: ScopeKind.AVAILABILITY_SET,
    ScaleSet: ScopeKind.SCALE_SET,
    CloudService: ScopeKind.CLOUD_SERVICE,
}


def exists(scope: Scope) -> bool:
    """Return whether the scope is part of the fleet. A removed scope stays in the store."""
    return scope.roster.is_standing


def plan(
    current: Sequence[Scope], desired: Fleet, *, prune: bool, without_notice: bool = False
) -> Plan:
    """Return the plan of the changes. `current` are all scopes of the store. Raises Refused if the
    fleet breaks a rule.

    With `prune` the declaration is the whole fleet: resources of earlier files that it does not
    name are removed, and missing keys get their defaults. Without `prune`, everything that is left
    out stays as it is (`partial_declaration.py`). With `without_notice`, instances that are due a
    Terminate event are removed at once.
    """
    known = {scope.id: scope for scope in current}
    resources = desired.resources
    wanted = _wanted(current, resources, is_partial=not prune, without_notice=without_notice)
    others = [each for each in current if exists(each) and each.id not in wanted]
    left_out = {resource_key(each.roster) for each in others}
    # Include empty placement groups: a scale set is removed when all its groups are.
    pruned = {
        each.id: _emptied(each.roster)
        for each in current
        if prune
        and each.id not in wanted
        and each.roster.origin in PRUNED_ORIGINS
        and resource_key(each.roster) in left_out
    }
    rosters = pruned | wanted
    unwarned = {
        id: _due(known[id], roster)
        for id, roster in rosters.items()
        if without_notice and id in known
    }
    _refuse_shared_addresses(current, rosters, unwarned)
    empty = _empty_sets(current)
    changes: list[FleetChange] = []
    declares: dict[ScopeId, Roster] = {}
    creates: list[Scope] = []
    for scope_id, roster in rosters.items():
        if scope_id not in known:
            creates.append(Scope(id=scope_id, roster=roster))
            changes += changes_of_new(creates[-1])
            continue
        found = changes_of(known[scope_id], roster, unwarned.get(scope_id, ()))
        if not found and scope_id in empty:
            found = changes_of_empty_set(known[scope_id], roster)
        if found or roster.is_removed != known[scope_id].roster.is_removed:
            declares[scope_id] = roster
            changes += found
    silent = {resource_key_of(each) for each in resources if not each.place.says_driver}
    return Plan(
        changes=tuple(changes),
        kept=tuple(each.id for each in others if prune and each.id not in pruned),
        warnings=shared_names(
            [
                *((id, roster) for id, roster in rosters.items() if id not in pruned),
                *((each.id, each.roster) for each in others if each.id not in pruned),
            ]
        ),
        declares=tuple(
            replace(
                step,
                without_notice=unwarned.get(step.scope_id, frozenset()),
                says_driver=resource_key(step.roster) not in silent,
            )
            for step in _in_order(declares, known)
        ),
        creates=tuple(creates),
    )


def _empty_sets(current: Iterable[Scope]) -> set[ScopeId]:
    """Return the first placement group of each scale set that has no instances."""
    return {
        min(groups, key=lambda each: len(each.id)).id
        for groups in _by_resource(current).values()
        if groups[0].roster.kind is ScopeKind.SCALE_SET
        and not any(each.roster.live for each in groups)
    }


def _due(scope: Scope, wanted: Roster) -> frozenset[InstanceName]:
    return frozenset(each.name for each in leaving(scope, wanted))


def refuse_existing(current: Iterable[Scope], desired: Fleet) -> None:
    """Raise Refused if a resource that is to be created exists already."""
    # Names in Azure are not case-sensitive.
    there = {_spelled_alike(key) for key in _standing(current)}
    for resource in desired.resources:
        key = resource_key_of(resource)
        if _spelled_alike(key) in there:
            raise Refused(
                Code.SCOPE_EXISTS,
                f"{key[2]} {resource.name!r} is there already, and nothing was changed; "
                "choose another name, or change the one that is there (`fairwarning scale` "
                "resizes a scale set)",
            )


def refuse_plan(plan: Plan, *, force: bool) -> None:
    """Raise Refused if a step of the plan would be refused, as far as this can be known before it
    begins.
    """
    for step in plan.declares:
        unwarned = step.without_notice
        refuse_declaration(step.before, step.roster, force=force, without_notice=unwarned)


def removal(
    scope: Scope,
    names: Collection[InstanceName] | None = None,
    *,
    groups: Sequence[Scope] = (),
    without_notice: bool = False,
) -> Plan:
    """Return the plan that removes the whole scope, or the instances `names`. Raises Refused if one
    does not exist.

    `groups` are all scopes of the resource. If no other group has an instance that stays, the whole
    resource is removed.
    """
    roster = _removed(scope, names)
    unwarned = _due(scope, roster) if without_notice else frozenset()
    changes = changes_of(scope, roster, unwarned)
    if not changes and names is None and scope.id in _empty_sets([scope, *groups]):
        changes = changes_of_empty_set(scope, roster)
    step = Step(before=scope, roster=roster, without_notice=unwarned)
    is_new = bool(changes) or roster.is_removed != scope.roster.is_removed
    others = [each for each in groups if each.id != scope.id]
    is_last = names is None and not any(map(stayers, others))
    ended = [
        Step(before=each, roster=replace(each.roster, is_removed=True))
        for each in others
        if is_last and not each.roster.is_removed
    ]
    return Plan(changes=changes, declares=(*ended, step) if is_new else tuple(ended))


def removal_of_all(groups: Iterable[Scope], *, without_notice: bool = False) -> Plan:
    """Return the plan that removes a whole resource, which has these scopes.

    An empty scale set is one change, however many placement groups it has.
    """
    found = list(groups)
    parts = [removal(each, without_notice=without_notice) for each in found]
    said_of = _empty_sets(found) or {each.id for each in found}
    return Plan(
        changes=tuple(
            change
            for group, part in zip(found, parts, strict=True)
            if group.id in said_of
            for change in part.changes
        ),
        declares=tuple(step for part in parts for step in part.declares),
    )


def confirmation(plan: Plan) -> str:
    """Return a text that identifies the instances that the plan removes without notice. It is empty
    if there are none.

    It also depends on the revisions of their scopes, so that the text of an old preview is not
    accepted.
    """
    steps = sorted(
        (step.scope_id, str(step.before.revision), *sorted(step.without_notice))
        for step in plan.declares
        if step.without_notice
    )
    named = "\n".join(map("/".join, steps))
    return sha256(named.encode()).hexdigest()[:CONFIRMATION_CHARS] if named else ""


def _removed(scope: Scope, names: Collection[InstanceName] | None) -> Roster:
    if names is None:
        return _emptied(scope.roster)
    for name in names:
        if not scope.roster.has_live(name):
            raise Refused(
                Code.UNKNOWN_INSTANCE,
                f"scope {scope.id} has no instance {name!r} to remove; `fairwarning fleet show` "
                "lists them",
            )
    rest = {each.name: each for each in scope.roster.live if each.name not in names}
    return replace(scope.roster, instances=rest)


def _emptied(roster: Roster) -> Roster:
    return replace(roster, instances={}, is_removed=True)


def _wanted(
    current: Iterable[Scope],
    resources: Iterable[Resource],
    *,
    is_partial: bool,
    without_notice: bool,
) -> dict[ScopeId, Roster]:
    by_resource = _by_resource(current)
    _refuse_alike(current, resources)
    wanted: dict[ScopeId, Roster] = {}
    for declared in resources:
        known = by_resource[resource_key_of(declared)]
        resource = completed(declared, known) if is_partial else declared
        first = expand(resource)[0]
        if first.id in wanted:
            raise Refused(
                Code.SCOPE_EXISTS,
                f"{first.roster.kind} {resource.name!r} is declared twice; take one of them out",
            )
        if isinstance(resource, ScaleSet):
            own = declared_rosters(resource, known, without_notice=without_notice)
        else:
            before = known[0].roster if known else _emptied(first.roster)
            own = {first.id: placed_roster(resource, before, first.roster)}
        if is_partial:
            by_id = {each.id: each for each in known}
            own = {id: kept(roster, by_id.get(id), resource) for id, roster in own.items()}
        wanted |= own
    return wanted


def _by_resource(current: Iterable[Scope]) -> dict[tuple[str, ...], list[Scope]]:
    found: dict[tuple[str, ...], list[Scope]] = defaultdict(list)
    for scope in current:
        found[resource_key(scope.roster)].append(scope)
    return found


def _standing(current: Iterable[Scope]) -> set[tuple[str, ...]]:
    return {key for key, groups in _by_resource(current).items() if stands(groups)}


def _refuse_alike(current: Iterable[Scope], resources: Iterable[Resource]) -> None:
    """Raise Refused if two names differ only in upper and lower case. For Azure they are the same
    name.
    """
    there = _standing(current)
    taken = {_spelled_alike(key): key for key in there}
    for resource in resources:
        key = resource_key_of(resource)
        other = taken.setdefault(_spelled_alike(key), key)
        # If both exist already, they are allowed.
        if other != key and not {key, other} <= there:
            raise Refused(
                Code.SCOPE_EXISTS,
                f"{key[2]} {resource.name!r} differs only in spelling from {'/'.join(other)}, and "
                "Azure takes them for one; use that spelling, or choose another name",
            )


def resource_key_of(resource: Resource) -> tuple[str, ...]:
    place, kind = resource.place, _KINDS[type(resource)]
    return (place.subscription, place.resource_group, kind, resource.name)


def _spelled_alike(key: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, key))


def _refuse_shared_addresses(
    current: Iterable[Scope],
    rosters: Mapping[ScopeId, Roster],
    without_notice: Mapping[ScopeId, Names],
) -> None:
    """Raise Refused if two instances would have the same address. An instance that leaves by a
    Terminate event has its addresses until then.
    """
    owners: dict[str, str] = {}
    for owner, instance in _owners(current, rosters, without_notice):
        for address in instance.addresses:
            if address in owners:
                raise Refused(
                    Code.ADDRESS_IN_USE,
                    f"address {address} would belong to {owners[address]} and to {owner}; "
                    "addresses are unique across the fleet, so choose another",
                )
            owners[address] = owner


def _owners(
    current: Iterable[Scope],
    rosters: Mapping[ScopeId, Roster],
    without_notice: Mapping[ScopeId, Names],
) -> Iterator[tuple[str, Instance]]:
    known = {each.id: each for each in current}
    now = {id: each.roster for id, each in known.items()}
    for scope_id, roster in {**now, **rosters}.items():
        everyone, going = roster.live, frozenset[InstanceName]()
        if scope_id in known:
            scope, unwarned = known[scope_id], without_notice.get(scope_id, ())
            everyone += leaving(scope, roster, unwarned)
            going = leavers(scope) | _due(scope, roster)
        for instance in everyone:
            until = " until its Terminate is over" if instance.name in going else ""
            yield f"instance {instance.name!r} of {scope_id}{until}", instance


def _in_order(declares: Mapping[ScopeId, Roster], known: Mapping[ScopeId, Scope]) -> Iterator[Step]:
    """Yield the steps in an order in which no scope gets an address that another scope
    still has.
    """
    holder = {
        address: scope_id for scope_id in declares for address in _addresses(known[scope_id].roster)
    }
    given_up: dict[ScopeId, set[str]] = defaultdict(set)
    left = dict(declares)
    while left:
        scope_id = next((each for each in left if not _lenders(each, left, holder)), None)
        if scope_id is None:
            scope_id = next(iter(left))
            for lender, addresses in _lenders(scope_id, left, holder).items():
                given_up[lender] |= addresses
                before = known[lender]
                roster = _without(before.roster, given_up[lender])
                yield Step(before=before, roster=roster, is_first=True)
            for address in _addresses(left[scope_id]):
                holder.pop(address, None)
        yield Step(before=known[scope_id], roster=left.pop(scope_id))


def _lenders(
    scope_id: ScopeId, left: Mapping[ScopeId, Roster], holder: Mapping[str, ScopeId]
) -> dict[ScopeId, set[str]]:
    """Return the scopes that must give up addresses before this scope can have its roster, each
    with these addresses.
    """
    found: dict[ScopeId, set[str]] = defaultdict(set)
    for address in _addresses(left[scope_id]):
        lender = holder.get(address, scope_id)
        if lender != scope_id and lender in left:
            found[lender].add(address)
    return found


def _addresses(roster: Roster) -> Iterator[str]:
    return (address for instance in roster.live for address in instance.addresses)


def _without(roster: Roster, addresses: Collection[str]) -> Roster:
    instances = {
        each.name: replace(each, addresses=tuple(a for a in each.addresses if a not in addresses))
        for each in roster.live
    }
    return replace(roster, instances=instances)
