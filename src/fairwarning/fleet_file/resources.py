"""This module makes the resources of the core from the tables of a fleet file, and finds the place
of each mistake.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Policy, ScopeKind
from fairwarning.core.notice import parse_terminate_notice_ms
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Member,
    Orchestration,
    Place,
    Resource,
    ScaleSet,
    VirtualMachine,
    distinct_suffixes,
    expand,
    refuse_capacity,
    refuse_fault_domains,
    refuse_update_domains,
    scope_id,
)
from fairwarning.core.roster import (
    refuse_flexible_name,
    refuse_name,
    refuse_terminate_on_spot,
)
from fairwarning.fleet_file.partial_declaration import MEMBER_KEYS
from fairwarning.fleet_file.problems import Mistakes, TooManyInstancesNoted, Where
from fairwarning.fleet_file.schema import (
    SHAPES,
    AvailabilitySetShape,
    CloudServiceShape,
    Defaults,
    FleetShape,
    MemberShape,
    ResourceShape,
    ScaleSetShape,
    Table,
    VmShape,
)
from fairwarning.fleet_file.values import (
    handle_of,
    own_addresses,
    place_of,
    policy_of,
    shared_addresses,
    tags_of,
)

FLEET_INSTANCES_MAX = 100_000
"""The largest fleet of an ordinary request. A short text could declare millions."""
_DEFAULT_KEYS = frozenset(Defaults.__struct_fields__)
_OWN_KEYS = {
    shape: frozenset(shape.__struct_fields__) - _DEFAULT_KEYS
    for shape in (VmShape, AvailabilitySetShape, ScaleSetShape, CloudServiceShape)
}


def resources_of(
    fleet: FleetShape,
    written: Table,
    drivers: DriverCatalogue,
    instances_max: int,
    mistakes: Mistakes,
    *,
    is_partial: bool,
) -> tuple[Resource, ...]:
    """Return the resources by kind, and within a kind in the order of the file.

    All that is wrong is noted in `mistakes`; the resources are then not complete. Raises
    TooManyInstancesNoted or TooManyMistakes.

    `written` is the data from which `fleet` was read; it shows which keys are missing. In a partial
    declaration (`partial_declaration.py`) missing keys keep their present values, which are not
    known here. So checks that need such values are left to the plan.
    """
    top = Where((), mistakes)
    _refuse_too_many_in_all(fleet, instances_max, top)
    place_of(fleet, fleet, top, drivers, is_partial=is_partial)
    policy_of(fleet, fleet, top, test=True)  # Whether it is lowered depends on the resource.
    usual = _Usual(fleet, drivers, is_partial=is_partial)
    found: list[Resource] = []
    ids: list[tuple[str, Where]] = []
    for (kind, number), shape in _shapes(fleet):
        where = top.inside(kind, number)
        if where.is_wrong:
            continue
        own, before = written[kind][number], mistakes.reports
        resource = _read(usual, shape, where, own, is_partial=is_partial)
        found.append(resource)
        if not any(where[each].is_wrong for each in ("name", "subscription", "resource_group")):
            scope_kind = ScopeKind(kind.replace("_", "-"))
            ids.append((scope_id(resource.place, scope_kind, resource.name), where["name"]))
        if mistakes.reports == before and not mistakes.has_below(where.path):
            with where["name"]:
                expand(_comparable(resource) if is_partial else resource)
    _note_repeats("scope", iter(ids))
    _note_repeats("address", _addresses(fleet, top))
    return tuple(found)


def _comparable(resource: Resource) -> Resource:
    """Return the resource without values whose check needs a key that the declaration
    leaves out.
    """
    left_out = resource.place.left_out
    match resource:
        case ScaleSet() if "capacity" in left_out:
            return replace(resource, addresses=())
        case CloudService() if "roles" in left_out:
            return replace(resource, addresses=())
        case AvailabilitySet():
            members = resource.members
            if "update_domains" in left_out:
                members = tuple(replace(each, update_domain=None) for each in members)
            if "fault_domains" in left_out:
                members = tuple(replace(each, fault_domain=None) for each in members)
            return replace(resource, members=members)
        case _:
            return resource


def _shapes(fleet: FleetShape) -> Iterator[tuple[tuple[str, int], ResourceShape]]:
    for kind in SHAPES:
        for number, shape in enumerate(getattr(fleet, kind)):
            yield (kind, number), shape


def _refuse_too_many_in_all(fleet: FleetShape, instances_max: int, top: Where) -> None:
    """Raise TooManyInstancesNoted if there are too many instances. This is checked before they are
    made, because a short line can declare a thousand.
    """
    count = 0
    for path, shape in _shapes(fleet):
        match shape:
            case VmShape():
                count += 1
            case AvailabilitySetShape():
                count += len(shape.instances)
            case ScaleSetShape():
                count += max(shape.capacity, 0)
            case CloudServiceShape():
                count += sum(_whole_counts(shape))
        if count > instances_max:
            message = f"a declaration has at most {instances_max:,} instances; divide it"
            top.inside(*path).wrong(message)
            raise TooManyInstancesNoted


def _addresses(fleet: FleetShape, top: Where) -> Iterator[tuple[str, Where]]:
    for path, shape in _shapes(fleet):
        where = top.inside(*path)
        if not isinstance(shape, AvailabilitySetShape):
            yield from _listed(shape.addresses, where["addresses"])
            continue
        for number, member in enumerate(shape.instances):
            if isinstance(member, MemberShape):
                yield from _listed(member.addresses, where.inside("instances", number, "addresses"))


def _listed(texts: list[str], where: Where) -> Iterator[tuple[str, Where]]:
    return ((text, where[number]) for number, text in enumerate(texts))


def _note_repeats(what: str, said: Iterator[tuple[str, Where]]) -> None:
    seen: dict[str, Where] = {}
    for text, where in said:
        if text in seen:
            message = f"{what} {text} is declared twice; change one, or take it out"
            where.wrong(message, first=seen[text].path)
        seen.setdefault(text, where)


class _Usual:
    """Makes the place and the policy of resources. Most resources of a large fleet say nothing of
    their own about these, so what was made for one is used for the others.
    """

    def __init__(self, fleet: FleetShape, drivers: DriverCatalogue, *, is_partial: bool) -> None:
        self._fleet = fleet
        self._drivers = drivers
        self._is_partial = is_partial
        self._made: dict[frozenset[str], tuple[Place, Policy]] = {}
        """What was made, by the keys of the resource that are left out."""

    def of(self, shape: ResourceShape, where: Where, written: Table) -> tuple[Place, Policy]:
        absent = _OWN_KEYS[type(shape)].difference(written)
        # A mistake may be the reason why a key is not there, so nothing is used again then.
        is_usual = not where.mistakes and _DEFAULT_KEYS.isdisjoint(written)
        found = self._made.get(absent) if is_usual else None
        if found is not None:
            return found
        place = place_of(self._fleet, shape, where, self._drivers, is_partial=self._is_partial)
        place = replace(place, left_out=place.left_out | absent)
        made = place, policy_of(self._fleet, shape, where, test=place.test)
        if is_usual:
            self._made[absent] = made
        return made


def _read(
    usual: _Usual, shape: ResourceShape, where: Where, written: Table, *, is_partial: bool
) -> Resource:
    with where["name"]:
        refuse_name(shape.name)
    place, policy = usual.of(shape, where, written)
    unknown = place.left_out if is_partial else frozenset[str]()
    match shape:
        case VmShape():
            return _vm(shape, where, place, policy)
        case AvailabilitySetShape():
            return _availability_set(shape, where, place, policy, written, unknown)
        case ScaleSetShape():
            return _scale_set(shape, where, place, policy, unknown)
        case CloudServiceShape():
            return _cloud_service(shape, where, place, policy, unknown)


def _vm(shape: VmShape, where: Where, place: Place, policy: Policy) -> VirtualMachine:
    return VirtualMachine(
        name=shape.name,
        addresses=own_addresses(shape.addresses, where),
        tags=tags_of(shape.tags, where),
        handle=handle_of(shape.handle, where),
        priority=shape.priority,
        eviction=shape.eviction,
        policy=policy,
        place=place,
    )


def _availability_set(
    shape: AvailabilitySetShape,
    where: Where,
    place: Place,
    policy: Policy,
    written: Table,
    unknown: Collection[str],
) -> AvailabilitySet:
    _check_domains(shape, where)
    unknown = _unknown(unknown, where, "update_domains", "fault_domains")
    listed = where["instances"]
    members = tuple(
        _member(each, listed[number], shape, written["instances"][number], unknown)
        for number, each in enumerate(shape.instances)
    )
    names = (_name_place(shape, listed, number) for number in range(len(members)))
    _note_repeats("instance", zip((each.name for each in members), names, strict=True))
    _refuse_too_many(len(members), listed[SCOPE_INSTANCES_MAX])
    return AvailabilitySet(
        name=shape.name,
        members=members,
        tags=tags_of(shape.tags, where),
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _name_place(shape: AvailabilitySetShape, listed: Where, number: int) -> Where:
    is_name = isinstance(shape.instances[number], str)
    return listed[number] if is_name else listed[number]["name"]


def _unknown(left_out: Collection[str], where: Where, *keys: str) -> set[str]:
    """Return the keys whose values are not known: they are left out, or have a mistake. These
    values are not compared with others.
    """
    wrong = (each for each in keys if where.mistakes.has_below(where[each].path))
    return {*left_out, *wrong}


def _member(
    given: str | MemberShape,
    where: Where,
    shape: AvailabilitySetShape,
    written: str | Table,
    unknown: Collection[str],
) -> Member:
    if isinstance(given, str):
        with where:
            refuse_name(given)
        return Member(name=given, left_out=MEMBER_KEYS)
    with where["name"]:
        refuse_name(given.name)
    if "update_domains" not in unknown:
        _check_domain(given.update_domain, shape.update_domains, where["update_domain"])
    if "fault_domains" not in unknown:
        _check_domain(given.fault_domain, shape.fault_domains, where["fault_domain"])
    return Member(
        name=given.name,
        addresses=own_addresses(given.addresses, where),
        tags=tags_of(given.tags, where),
        handle=handle_of(given.handle, where),
        update_domain=given.update_domain,
        fault_domain=given.fault_domain,
        left_out=MEMBER_KEYS - {*written},
    )


def _check_domain(domain: int | None, count: int, where: Where) -> None:
    if domain is not None and not 0 <= domain < count:
        key = where.path[-1]
        where.wrong(f"`{key}` must be 0 to {count - 1}, because there are {count}")


def _scale_set(
    shape: ScaleSetShape, where: Where, place: Place, policy: Policy, unknown: Collection[str]
) -> ScaleSet:
    _check_domains(shape, where)
    is_flexible = shape.orchestration is Orchestration.FLEXIBLE
    if is_flexible:
        with where["name"]:
            refuse_flexible_name(shape.name)
    with where["capacity"]:
        refuse_capacity(shape.name, shape.capacity)
    unknown = _unknown(unknown, where, "capacity")
    named = shape.capacity if is_flexible and not where["capacity"].is_wrong else 0
    return ScaleSet(
        name=shape.name,
        capacity=shape.capacity,
        orchestration=shape.orchestration,
        addresses=shared_addresses(
            shape.addresses, where, None if "capacity" in unknown else shape.capacity
        ),
        suffixes=distinct_suffixes(shape.name, named),
        tags=tags_of(shape.tags, where),
        terminate_notice_ms=_terminate_notice_ms(shape, where["terminate_notice"]),
        priority=shape.priority,
        eviction=shape.eviction,
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _terminate_notice_ms(shape: ScaleSetShape, where: Where) -> int | None:
    if shape.terminate_notice in (None, ""):
        return None
    notice_ms = None
    with where:
        notice_ms = parse_terminate_notice_ms(shape.terminate_notice)
        refuse_terminate_on_spot([Instance(name=InstanceName("any"), priority=shape.priority)])
    return notice_ms


def _cloud_service(
    shape: CloudServiceShape, where: Where, place: Place, policy: Policy, unknown: Collection[str]
) -> CloudService:
    _check_domains(shape, where)
    for role, count in shape.roles.items():
        _check_role(role, count, where.inside("roles", role))
    instances = sum(_whole_counts(shape))
    _refuse_too_many(instances, where["roles"])
    unknown = _unknown(unknown, where, "roles")
    return CloudService(
        name=shape.name,
        roles=shape.roles,
        addresses=shared_addresses(
            shape.addresses, where, None if "roles" in unknown else instances
        ),
        tags=tags_of(shape.tags, where),
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _check_role(role: str, count: object, where: Where) -> None:
    with where:
        refuse_name(role)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        where.wrong(f"role `{role}` must be a number of instances, 0 or more")


def _whole_counts(shape: CloudServiceShape) -> Iterator[int]:
    return (each for each in shape.roles.values() if isinstance(each, int) and each > 0)


def _check_domains(
    shape: AvailabilitySetShape | ScaleSetShape | CloudServiceShape, where: Where
) -> None:
    with where["update_domains"]:
        refuse_update_domains(shape.name, shape.update_domains)
    with where["fault_domains"]:
        refuse_fault_domains(shape.name, shape.fault_domains)


def _refuse_too_many(instances: int, where: Where) -> None:
    if instances > SCOPE_INSTANCES_MAX:
        where.wrong(
            f"these are {instances} instances and a scope holds at most {SCOPE_INSTANCES_MAX}; put "
            "the others into another"
        )
