"""From the shapes of a file to the core's resources, with every check at the place it concerns."""

from collections.abc import Iterator

from fairwarning.core.fleet import (
    AvailabilitySet,
    CloudService,
    Member,
    Orchestration,
    Place,
    Resource,
    ScaleSet,
    VirtualMachine,
    expand,
    refuse_capacity,
    refuse_fault_domains,
    refuse_update_domains,
    suffixes_of,
)
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import Instance, InstanceName, Policy
from fairwarning.core.notice import parse_terminate_notice_ms
from fairwarning.core.roster import refuse_flexible_name, refuse_name, refuse_terminate_on_spot
from fairwarning.fleetfile.problems import Misplaced, Path, at
from fairwarning.fleetfile.shapes import (
    SHAPES,
    AvailabilitySetShape,
    CloudServiceShape,
    FleetShape,
    MemberShape,
    ResourceShape,
    ScaleSetShape,
    VmShape,
)
from fairwarning.fleetfile.values import (
    handle_of,
    own_addresses,
    place_of,
    policy_of,
    shared_addresses,
    tags_of,
)


def resources_of(fleet: FleetShape, origin: str) -> tuple[Resource, ...]:
    """In the order of kinds, and within a kind in the order of the file. Raises Misplaced."""
    place_of(fleet, fleet, (), origin)
    policy_of(fleet, fleet, (), test=True)  # Whether it is lowered depends on the resource.
    found = {path: _read(fleet, shape, path, origin) for path, shape in _shapes(fleet)}
    _refuse_repeats("scope", ((_scope_id(found[path]), (*path, "name")) for path in found))
    _refuse_repeats("address", _addresses(fleet))
    return tuple(found.values())


def _shapes(fleet: FleetShape) -> Iterator[tuple[Path, ResourceShape]]:
    for kind in SHAPES:
        for number, shape in enumerate(getattr(fleet, kind)):
            yield (kind, number), shape


def _scope_id(resource: Resource) -> str:
    return expand(resource)[0].id


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


def _read(fleet: FleetShape, shape: ResourceShape, path: Path, origin: str) -> Resource:
    with at(*path, "name"):
        refuse_name(shape.name)
    place = place_of(fleet, shape, path, origin)
    policy = policy_of(fleet, shape, path, test=place.test)
    match shape:
        case VmShape():
            resource: Resource = _vm(shape, path, place, policy)
        case AvailabilitySetShape():
            resource = _availability_set(shape, path, place, policy)
        case ScaleSetShape():
            resource = _scale_set(shape, path, place, policy)
        case CloudServiceShape():
            resource = _cloud_service(shape, path, place, policy)
    with at(*path, "name"):
        expand(resource)
    return resource


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
    shape: AvailabilitySetShape, path: Path, place: Place, policy: Policy
) -> AvailabilitySet:
    _check_domains(shape, path)
    members = tuple(
        _member(each, (*path, "instances", number), shape)
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


def _member(given: str | MemberShape, path: Path, shape: AvailabilitySetShape) -> Member:
    if isinstance(given, str):
        with at(*path):
            refuse_name(given)
        return Member(name=given)
    with at(*path, "name"):
        refuse_name(given.name)
    _check_domain(given.update_domain, shape.update_domains, (*path, "update_domain"))
    _check_domain(given.fault_domain, shape.fault_domains, (*path, "fault_domain"))
    return Member(
        name=given.name,
        addresses=own_addresses(given.addresses, path),
        tags=tags_of(given.tags, path),
        handle=handle_of(given.handle, path),
        update_domain=given.update_domain,
        fault_domain=given.fault_domain,
    )


def _check_domain(domain: int | None, count: int, path: Path) -> None:
    if domain is not None and not 0 <= domain < count:
        raise Misplaced(path, f"`{path[-1]}` must be 0 to {count - 1}, because there are {count}")


def _scale_set(shape: ScaleSetShape, path: Path, place: Place, policy: Policy) -> ScaleSet:
    _check_domains(shape, path)
    if shape.orchestration is Orchestration.FLEXIBLE:
        with at(*path, "name"):
            refuse_flexible_name(shape.name)
    with at(*path, "capacity"):
        refuse_capacity(shape.name, shape.capacity)
    return ScaleSet(
        name=shape.name,
        capacity=shape.capacity,
        orchestration=shape.orchestration,
        addresses=shared_addresses(shape.addresses, path, shape.capacity),
        suffixes=_suffixes(shape),
        tags=tags_of(shape.tags, path),
        terminate_notice_ms=_terminate_notice_ms(shape, (*path, "terminate_notice")),
        priority=shape.priority,
        eviction=shape.eviction,
        update_domains=shape.update_domains,
        fault_domains=shape.fault_domains,
        policy=policy,
        place=place,
    )


def _suffixes(shape: ScaleSetShape) -> tuple[str, ...]:
    """Distinct, whatever the digest does."""
    if shape.orchestration is not Orchestration.FLEXIBLE:
        return ()
    found: dict[str, None] = {}
    for suffix in suffixes_of(shape.name):
        if len(found) == shape.capacity:
            break
        found[suffix] = None
    return tuple(found)


def _terminate_notice_ms(shape: ScaleSetShape, path: Path) -> int | None:
    if shape.terminate_notice is None:
        return None
    with at(*path):
        notice_ms = parse_terminate_notice_ms(shape.terminate_notice)
        refuse_terminate_on_spot([Instance(name=InstanceName("any"), priority=shape.priority)])
    return notice_ms


def _cloud_service(
    shape: CloudServiceShape, path: Path, place: Place, policy: Policy
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
        addresses=shared_addresses(shape.addresses, path, instances),
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
