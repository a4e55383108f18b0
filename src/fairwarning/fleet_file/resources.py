"""This module makes the resources of the core from the tables of a fleet file, and finds the place
of each mistake.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Policy
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
)
from fairwarning.core.roster import (
    refuse_flexible_name,
    refuse_name,
    refuse_terminate_on_spot,
)
from fairwarning.fleet_file.partial_declaration import MEMBER_KEYS
from fairwarning.fleet_file.problems import CrowdAt, Misplaced, Path, at
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


def resources_of(
    fleet: FleetShape,
    written: Table,
    drivers: DriverCatalogue,
    instances_max: int = FLEET_INSTANCES_MAX,
    *,
    is_partial: bool,
) -> tuple[Resource, ...]:
    """Return the resources by kind, and within a kind in the order of the file. Raises Misplaced if
    there is a mistake.

    `written` is the data from which `fleet` was read; it shows which keys are missing. In a partial
    declaration (`partial_declaration.py`) missing keys keep their present values, which are not
    known here. So checks that need such values are left to the plan.
    """
    _refuse_crowd(fleet, instances_max)
    place_of(fleet, fleet, (), drivers, is_partial=is_partial)
    policy_of(fleet, fleet, (), test=True)  # Whether it is lowered depends on the resource.
    found: list[Resource] = []
    ids: list[tuple[str, Path]] = []
    for path, shape in _shapes(fleet):
        kind, number = path
        own = written[kind][number]
        resource = _read(fleet, shape, path, own, drivers, is_partial=is_partial)
        with at(*path, "name"):
            first = expand(_comparable(resource) if is_partial else resource)[0]
        found.append(resource)
        ids.append((first.id, (*path, "name")))
    _refuse_repeats("scope", iter(ids))
    _refuse_repeats("address", _addresses(fleet))
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


def _refuse_crowd(fleet: FleetShape, instances_max: int) -> None:
    """Raise CrowdAt if there are too many instances. This is checked before they are made, because
    a short line can declare a thousand.
    """
    count = 0
    for path, shape in _shapes(fleet):
        match shape:
            case VmShape():
                count += 1
            case AvailabilitySetShape():
                count += len(shape.instances)
            case ScaleSetShape():
                count += shape.capacity
            case CloudServiceShape():
                count += sum(each for each in shape.roles.values() if isinstance(each, int))
        if count > instances_max:
            message = f"a declaration has at most {instances_max:,} instances; divide it"
            raise CrowdAt(path, message)


def _addresses(fleet: FleetShape) -> Iterator[tuple[str, Path]]:
    for path, shape in _shapes(fleet):
        if not isinstance(shape, AvailabilitySetShape):
            yield from _listed(shape.addresses, (*path, "addresses"))
            continue
        for number, member in enumerate(shape.instances):
            if isinstance(member, MemberShape):
                where = (*path, "instances", number, "addresses")
                yield from _listed(member.addresses, where)


def _listed(texts: list[str], path: Path) -> Iterator[tuple[str, Path]]:
    return ((text, (*path, number)) for number, text in enumerate(texts))


def _refuse_repeats(what: str, said: Iterator[tuple[str, Path]]) -> None:
    seen: dict[str, Path] = {}
    for text, path in said:
        if text in seen:
            message = f"{what} {text} is declared twice; change one, or take it out"
            raise Misplaced(path, message, first=seen[text])
        seen[text] = path


def _read(
    fleet: FleetShape,
    shape: ResourceShape,
    path: Path,
    written: Table,
    drivers: DriverCatalogue,
    *,
    is_partial: bool,
) -> Resource:
    with at(*path, "name"):
        refuse_name(shape.name)
    place = place_of(fleet, shape, path, drivers, is_partial=is_partial)
    absent = {*shape.__struct_fields__} - {*written, *Defaults.__struct_fields__}
    place = replace(place, left_out=place.left_out | absent)
    policy = policy_of(fleet, shape, path, test=place.test)
    unknown = place.left_out if is_partial else frozenset[str]()
    match shape:
        case VmShape():
            return _vm(shape, path, place, policy)
        case AvailabilitySetShape():
            return _availability_set(shape, path, place, policy, written, unknown)
        case ScaleSetShape():
            return _scale_set(shape, path, place, policy, unknown)
        case CloudServiceShape():
            return _cloud_service(shape, path, place, policy, unknown)


def _vm(shape: VmShape, path: Path, place: Place, policy: Policy) -> VirtualMachine:
    return VirtualMachine(
        name=shape.name,
        addresses=own_addresses(shape.addresses, path),
        tags=tags_of(shape.tags, path),
        handle=handle_of(shape.handle, path),
        priority=shape.priority,
        eviction=shape.eviction,
        policy=policy,
        place=place,
    )


def _availability_set(
    shape: AvailabilitySetShape,
    path: Path,
    place: Place,
    policy: Policy,
    written: Table,
    unknown: Collection[str],
) -> AvailabilitySet:
    _check_domains(shape, path)
    members = tuple(
        _member(each, (*path, "instances", number), shape, written["instances"][number], unknown)
        for number, each in enumerate(shape.instances)
    )
    places = ((each.name, _name_path(shape, path, number)) for number, each in enumerate(members))
    _refuse_repeats("instance", places)
    if len(members) > SCOPE_INSTANCES_MAX:
        raise _too_many(len(members), (*path, "instances", SCOPE_INSTANCES_MAX))
    return AvailabilitySet(
        name=shape.name,
        members=members,
        tags=tags_of(shape.tags, path),
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _name_path(shape: AvailabilitySetShape, path: Path, number: int) -> Path:
    where = (*path, "instances", number)
    return where if isinstance(shape.instances[number], str) else (*where, "name")


def _member(
    given: str | MemberShape,
    path: Path,
    shape: AvailabilitySetShape,
    written: str | Table,
    unknown: Collection[str],
) -> Member:
    if isinstance(given, str):
        with at(*path):
            refuse_name(given)
        return Member(name=given, left_out=MEMBER_KEYS)
    with at(*path, "name"):
        refuse_name(given.name)
    if "update_domains" not in unknown:
        _check_domain(given.update_domain, shape.update_domains, (*path, "update_domain"))
    if "fault_domains" not in unknown:
        _check_domain(given.fault_domain, shape.fault_domains, (*path, "fault_domain"))
    return Member(
        name=given.name,
        addresses=own_addresses(given.addresses, path),
        tags=tags_of(given.tags, path),
        handle=handle_of(given.handle, path),
        update_domain=given.update_domain,
        fault_domain=given.fault_domain,
        left_out=MEMBER_KEYS - {*written},
    )


def _check_domain(domain: int | None, count: int, path: Path) -> None:
    if domain is not None and not 0 <= domain < count:
        raise Misplaced(path, f"`{path[-1]}` must be 0 to {count - 1}, because there are {count}")


def _scale_set(
    shape: ScaleSetShape, path: Path, place: Place, policy: Policy, unknown: Collection[str]
) -> ScaleSet:
    _check_domains(shape, path)
    is_flexible = shape.orchestration is Orchestration.FLEXIBLE
    if is_flexible:
        with at(*path, "name"):
            refuse_flexible_name(shape.name)
    with at(*path, "capacity"):
        refuse_capacity(shape.name, shape.capacity)
    return ScaleSet(
        name=shape.name,
        capacity=shape.capacity,
        orchestration=shape.orchestration,
        addresses=shared_addresses(
            shape.addresses, path, None if "capacity" in unknown else shape.capacity
        ),
        suffixes=distinct_suffixes(shape.name, shape.capacity if is_flexible else 0),
        tags=tags_of(shape.tags, path),
        terminate_notice_ms=_terminate_notice_ms(shape, (*path, "terminate_notice")),
        priority=shape.priority,
        eviction=shape.eviction,
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _terminate_notice_ms(shape: ScaleSetShape, path: Path) -> int | None:
    if shape.terminate_notice in (None, ""):
        return None
    with at(*path):
        notice_ms = parse_terminate_notice_ms(shape.terminate_notice)
        refuse_terminate_on_spot([Instance(name=InstanceName("any"), priority=shape.priority)])
    return notice_ms


def _cloud_service(
    shape: CloudServiceShape, path: Path, place: Place, policy: Policy, unknown: Collection[str]
) -> CloudService:
    _check_domains(shape, path)
    for role, count in shape.roles.items():
        _check_role(role, count, (*path, "roles", role))
    instances = sum(shape.roles.values())
    if instances > SCOPE_INSTANCES_MAX:
        raise _too_many(instances, (*path, "roles"))
    return CloudService(
        name=shape.name,
        roles=shape.roles,
        addresses=shared_addresses(
            shape.addresses, path, None if "roles" in unknown else instances
        ),
        tags=tags_of(shape.tags, path),
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _check_role(role: str, count: object, path: Path) -> None:
    with at(*path):
        refuse_name(role)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise Misplaced(path, f"role `{role}` must be a number of instances, 0 or more")


def _check_domains(
    shape: AvailabilitySetShape | ScaleSetShape | CloudServiceShape, path: Path
) -> None:
    with at(*path, "update_domains"):
        refuse_update_domains(shape.name, shape.update_domains)
    with at(*path, "fault_domains"):
        refuse_fault_domains(shape.name, shape.fault_domains)


def _too_many(instances: int, path: Path) -> Misplaced:
    return Misplaced(
        path,
        f"these are {instances} instances and a scope holds at most {SCOPE_INSTANCES_MAX}; put "
        "the others into another",
    )
