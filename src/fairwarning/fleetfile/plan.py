"""From the fleet as it is to the fleet as it is wanted: what would change, and in which order.

Theory of operation. Each scope is one transaction, so a plan is a list of them: first the
scopes that are there, each with the whole roster to declare, then those that are new. An
address may pass from one scope to another, so whoever gives it up comes first; scopes that
trade addresses with each other give them up in a step of their own. Every step leads towards
the same end, so planning and applying again completes what was interrupted. Resources that
the file does not own (`origin`) are never removed by it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from fairwarning.core.declaring import refuse_declaration
from fairwarning.core.fleet import Resource, ScaleSet, expand
from fairwarning.core.model import InstanceName, Roster, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.fleetfile.changes import changes_of, changes_of_new
from fairwarning.fleetfile.model import Fleet, FleetChange, Plan, Step
from fairwarning.fleetfile.scaling import scaled
from fairwarning.fleetfile.settling import settled

PRUNED_ORIGINS = frozenset({"file", "starter"})


def exists(scope: Scope) -> bool:
    """A scope that has lost all its instances is history only; its id stays in the store."""
    return bool(scope.roster.live)


def plan(current: Sequence[Scope], desired: Fleet, *, prune: bool) -> Plan:
    """Raises Refused if the fleet could not be. `current` is everything that the store has.

    With `prune`, resources of earlier files that this one does not name are removed.
    """
    known = {scope.id: scope for scope in current}
    wanted = _wanted(current, desired.resources)
    others = [each for each in current if exists(each) and each.id not in wanted]
    pruned = {
        each.id: _emptied(each.roster)
        for each in others
        if prune and each.roster.origin in PRUNED_ORIGINS
    }
    rosters = pruned | wanted
    _refuse_shared_addresses({each.id: each.roster for each in current} | rosters)
    changes: list[FleetChange] = []
    declares: dict[ScopeId, Roster] = {}
    creates: list[Scope] = []
    for scope_id, roster in rosters.items():
        if scope_id not in known:
            creates.append(Scope(id=scope_id, roster=roster))
            changes += changes_of_new(creates[-1])
        elif found := changes_of(known[scope_id], roster):
            declares[scope_id] = roster
            changes += found
    return Plan(
        changes=tuple(changes),
        kept=tuple(each.id for each in others if prune and each.id not in pruned),
        declares=tuple(_in_order(declares, known)),
        creates=tuple(creates),
    )


def refuse_plan(plan: Plan, *, force: bool) -> None:
    """Whatever would stop the plan halfway, as far as it can be known before it begins."""
    for step in plan.declares:
        refuse_declaration(step.before, step.roster, force=force)


def removal(scope: Scope, names: Collection[InstanceName] | None = None) -> Plan:
    """Of the whole scope, or of these instances. Raises Refused if one is not there."""
    roster = _removed(scope, names)
    changes = changes_of(scope, roster)
    step = Step(before=scope, roster=roster)
    return Plan(changes=changes, declares=(step,) if changes else ())


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
    return replace(roster, instances={})


def _wanted(current: Iterable[Scope], resources: Iterable[Resource]) -> dict[ScopeId, Roster]:
    by_resource: dict[tuple[str, ...], list[Scope]] = defaultdict(list)
    for scope in current:
        by_resource[_key(scope.roster)].append(scope)
    wanted: dict[ScopeId, Roster] = {}
    for resource in resources:
        first = expand(resource)[0]
        known = by_resource[_key(first.roster)]
        if first.id in wanted:
            raise Refused(
                Code.SCOPE_EXISTS,
                f"{first.roster.kind} {resource.name!r} is declared twice; take one of them out",
            )
        if isinstance(resource, ScaleSet):
            wanted |= scaled(resource, known)
        else:
            before = known[0].roster if known else _emptied(first.roster)
            wanted[first.id] = settled(resource, before)
    return wanted


def _key(roster: Roster) -> tuple[str, ...]:
    return (roster.subscription, roster.resource_group, roster.kind, roster.resource)


def _refuse_shared_addresses(rosters: Mapping[ScopeId, Roster]) -> None:
    owners: dict[str, str] = {}
    for scope_id, roster in rosters.items():
        for instance in roster.live:
            for address in instance.addresses:
                owner = f"instance {instance.name!r} of {scope_id}"
                if address in owners:
                    raise Refused(
                        Code.ADDRESS_IN_USE,
                        f"address {address} would belong to {owners[address]} and to {owner}; "
                        "addresses are unique across the fleet, so choose another",
                    )
                owners[address] = owner


def _in_order(declares: Mapping[ScopeId, Roster], known: Mapping[ScopeId, Scope]) -> Iterator[Step]:
    """Never an address that another scope still has."""
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
                yield Step(before=before, roster=_without(before.roster, given_up[lender]))
            for address in _addresses(left[scope_id]):
                holder.pop(address, None)
        yield Step(before=known[scope_id], roster=left.pop(scope_id))


def _lenders(
    scope_id: ScopeId, left: Mapping[ScopeId, Roster], holder: Mapping[str, ScopeId]
) -> dict[ScopeId, set[str]]:
    """Who must give up which addresses before this scope can have its roster."""
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
