"""This module makes scopes from the resources that an operator declares.

Instances are spread over update and fault domains in turn, as in Azure. A scale set with more than
a hundred instances becomes several scopes, one for each placement group.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import count

from fairwarning.core.hooks import Hooks
from fairwarning.core.limits import SCOPE_INSTANCES_MAX
from fairwarning.core.model import (
    EvictionPolicy,
    Instance,
    InstanceName,
    Model,
    Policy,
    Priority,
    Roster,
    Scope,
    ScopeId,
    ScopeKind,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.roster import refuse_scope

DEFAULT_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
DEFAULT_RESOURCE_GROUP = "default"
DEFAULT_LOCATION = "local"
UPDATE_DOMAINS_MAX = 20  # A limit of Azure, as is the next one.
FAULT_DOMAINS_MAX = 5  # A limit of Azure.
CAPACITY_MAX = 1_000  # The largest scale set of Azure.
SUFFIX_CHARS = 8  # As in the names that Azure gives to flexible instances.
_BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a resource is, which driver and hooks it has, and whether it is only a test."""

    subscription: str = DEFAULT_SUBSCRIPTION
    resource_group: str = DEFAULT_RESOURCE_GROUP
    location: str = DEFAULT_LOCATION
    test: bool = False
    driver: str = "simulated"
    driver_settings: Mapping[str, str] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    origin: str = "api"
    left_out: frozenset[str] = frozenset()
    """The keys of a fleet file that the declaration of the resource does not set."""

    @property
    def says_driver(self) -> bool:
        return "driver" not in self.left_out

    @property
    def says_hooks(self) -> bool:
        return "hooks" not in self.left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An instance as it is declared. It may have no domains yet."""

    name: str
    addresses: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    handle: str = ""
    update_domain: int | None = None
    """The update domain of the instance. None means that one is chosen once, and then kept."""
    fault_domain: int | None = None
    left_out: frozenset[str] = frozenset()
    """The keys of a fleet file that the declaration of the member does not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachine:
    name: str
    addresses: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    handle: str = ""
    priority: Priority = Priority.REGULAR
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE
    policy: Policy = Policy()
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilitySet:
    name: str
    members: tuple[Member, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    """The tags of all members. If a member has a tag with the same key, the member's tag wins."""
    update_domains: int = 5
    fault_domains: int = 2
    policy: Policy = Policy()
    place: Place = Place()


class Orchestration(StrEnum):
    UNIFORM = "uniform"
    FLEXIBLE = "flexible"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSet:
    name: str
    capacity: int = 0
    orchestration: Orchestration = Orchestration.UNIFORM
    addresses: tuple[str, ...] = ()
    """The addresses for the instances, in order. Each instance gets one."""
    suffixes: tuple[str, ...] = ()
    """The last eight characters of the name of each instance. Only a flexible set needs them."""
    tags: Mapping[str, str] = field(default_factory=dict)
    terminate_notice_ms: int | None = None
    priority: Priority = Priority.REGULAR
    eviction: EvictionPolicy = EvictionPolicy.DEALLOCATE
    update_domains: int = 5
    fault_domains: int = 5
    policy: Policy = Policy()
    place: Place = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudService:
    name: str
    roles: Mapping[str, int] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    update_domains: int = 5
    fault_domains: int = 2
    policy: Policy = Policy()
    place: Place = Place()


Resource = VirtualMachine | AvailabilitySet | ScaleSet | CloudService


def scope_id(place: Place, kind: ScopeKind, name: str, placement_group: int = 0) -> ScopeId:
    """Return the unique id of a scope, such as `SUBSCRIPTION/GROUP/scale-set/workers/0`."""
    parts = [place.subscription, place.resource_group, kind, name]
    if kind is ScopeKind.SCALE_SET:
        parts.append(str(placement_group))
    return ScopeId("/".join(parts))


def expand(resource: Resource, *, first_number: int = 0) -> tuple[Scope, ...]:
    """Return the scopes of a resource. Raises Refused if the resource breaks a rule. The first
    instance of a uniform scale set gets the number `first_number`.
    """
    scopes: tuple[Scope, ...]
    match resource:
        case VirtualMachine():
            scopes = (_of_vm(resource),)
        case AvailabilitySet():
            scopes = (_of_availability_set(resource),)
        case ScaleSet():
            scopes = _of_scale_set(resource, first_number)
        case CloudService():
            scopes = (_of_cloud_service(resource),)
    for scope in scopes:
        refuse_scope(scope)
    return scopes


def _of_vm(vm: VirtualMachine) -> Scope:
    instance = Instance(
        name=InstanceName(vm.name),
        addresses=vm.addresses,
        tags=vm.tags,
        handle=vm.handle,
        priority=vm.priority,
        eviction=vm.eviction,
    )
    return _scope(vm, ScopeKind.VM, (1, 1), [instance])


def _of_availability_set(resource: AvailabilitySet) -> Scope:
    domains = _domains(resource.name, resource.update_domains, resource.fault_domains)
    instances = [
        Instance(
            name=InstanceName(member.name),
            update_domain=_given(member.update_domain, number % domains[0]),
            fault_domain=_given(member.fault_domain, number % domains[1]),
            addresses=member.addresses,
            tags={**resource.tags, **member.tags},
            handle=member.handle,
        )
        for number, member in enumerate(resource.members)
    ]
    return _scope(resource, ScopeKind.AVAILABILITY_SET, domains, instances)


def _given(domain: int | None, turn: int) -> int:
    return turn if domain is None else domain


def _of_cloud_service(resource: CloudService) -> Scope:
    domains = _domains(resource.name, resource.update_domains, resource.fault_domains)
    addresses = iter(resource.addresses)
    instances = [
        Instance(
            name=InstanceName(f"{role}_IN_{number}"),
            update_domain=number % domains[0],
            fault_domain=number % domains[1],
            addresses=_next_address(addresses),
            tags=resource.tags,
        )
        for role, instances_of_role in resource.roles.items()
        for number in range(instances_of_role)
    ]
    _refuse_left_over(resource.name, addresses)
    return _scope(resource, ScopeKind.CLOUD_SERVICE, domains, instances)


def _of_scale_set(resource: ScaleSet, first_number: int) -> tuple[Scope, ...]:
    refuse_capacity(resource.name, resource.capacity)
    domains = _domains(resource.name, resource.update_domains, resource.fault_domains)
    model = Model(terminate_notice_ms=resource.terminate_notice_ms)
    addresses = iter(resource.addresses)
    names = _scale_set_names(resource, first_number)
    instances = [
        Instance(
            name=name,
            update_domain=number % domains[0],
            fault_domain=number % domains[1],
            addresses=_next_address(addresses),
            tags=resource.tags,
            priority=resource.priority,
            eviction=resource.eviction,
            model=model,
        )
        for number, name in enumerate(names)
    ]
    _refuse_left_over(resource.name, addresses)
    groups = [
        instances[first : first + SCOPE_INSTANCES_MAX]
        for first in range(0, max(len(instances), 1), SCOPE_INSTANCES_MAX)
    ]
    return tuple(
        _scope(
            resource,
            ScopeKind.SCALE_SET,
            domains,
            members,
            group=group,
            model=model,
            is_numbered=resource.orchestration is Orchestration.UNIFORM,
            next_number=first_number + group * SCOPE_INSTANCES_MAX + len(members),
        )
        for group, members in enumerate(groups)
    )


def _scale_set_names(resource: ScaleSet, first_number: int) -> list[InstanceName]:
    if resource.orchestration is Orchestration.UNIFORM:
        numbers = range(first_number, first_number + resource.capacity)
        return [InstanceName(f"{resource.name}_{number}") for number in numbers]
    if len(set(resource.suffixes)) < resource.capacity:
        raise Refused(
            Code.FLEET_INVALID,
            f"flexible scale set {resource.name!r} has capacity {resource.capacity} and "
            f"{len(set(resource.suffixes))} distinct suffixes; give one for each instance",
        )
    return [
        InstanceName(f"{resource.name}_{each}") for each in resource.suffixes[: resource.capacity]
    ]


def suffixes_of(name: str) -> Iterator[str]:
    """Yield suffixes for instance names without end. The same name always gives the same ones."""
    for number in count():
        digest = int.from_bytes(sha256(f"{name}/{number}".encode()).digest())
        yield base36(digest % 36**SUFFIX_CHARS).lower().rjust(SUFFIX_CHARS, "0")


def distinct_suffixes(name: str, number: int) -> tuple[str, ...]:
    """Return the first `number` different suffixes of `suffixes_of`."""
    found: dict[str, None] = {}
    for suffix in suffixes_of(name):
        if len(found) == number:
            break
        found[suffix] = None
    return tuple(found)


def base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits


def uniform_hostname(prefix: str, number: int) -> str:
    """Return the computer name of a uniform instance: the prefix and six digits in base 36."""
    return f"{prefix}{base36(number).rjust(6, '0')}"


def flexible_hostname(prefix: str, name: str) -> str:
    """Return the computer name of a flexible instance: the prefix and six derived characters."""
    digest = int.from_bytes(sha256(name.encode()).digest())
    return f"{prefix}{base36(digest % 36**6).rjust(6, '0')}"


def _scope(
    resource: Resource,
    kind: ScopeKind,
    domains: tuple[int, int],
    instances: Sequence[Instance],
    *,
    group: int = 0,
    model: Model = Model(),
    is_numbered: bool = False,
    next_number: int = 0,
) -> Scope:
    name, place = resource.name, resource.place
    by_name = {each.name: each for each in instances}
    if len(by_name) != len(instances):
        raise Refused(
            Code.INSTANCE_EXISTS, f"{kind} {name!r} names an instance twice; rename one of them"
        )
    roster = Roster(
        kind=kind,
        subscription=place.subscription,
        resource_group=place.resource_group,
        resource=name,
        location=place.location,
        test=place.test,
        driver=place.driver,
        driver_settings=place.driver_settings,
        hooks=place.hooks,
        origin=place.origin,
        update_domains=domains[0],
        fault_domains=domains[1],
        policy=resource.policy,
        model=model,
        is_numbered=is_numbered,
        next_number=next_number,
        instances=by_name,
    )
    return Scope(id=scope_id(place, kind, name, group), roster=roster)


def _domains(name: str, update_domains: int, fault_domains: int) -> tuple[int, int]:
    refuse_update_domains(name, update_domains)
    refuse_fault_domains(name, fault_domains)
    return update_domains, fault_domains


def refuse_update_domains(name: str, count: int) -> None:
    _refuse_outside(f"{name!r} has {count} update domains", count, 1, UPDATE_DOMAINS_MAX)


def refuse_fault_domains(name: str, count: int) -> None:
    _refuse_outside(f"{name!r} has {count} fault domains", count, 1, FAULT_DOMAINS_MAX)


def refuse_capacity(name: str, capacity: int) -> None:
    _refuse_outside(f"scale set {name!r} has capacity {capacity}", capacity, 0, CAPACITY_MAX)


def _refuse_outside(said: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise Refused(Code.FLEET_INVALID, f"{said}; use {least} to {most}")


def _next_address(addresses: Iterator[str]) -> tuple[str, ...]:
    address = next(addresses, None)
    return () if address is None else (address,)


def _refuse_left_over(name: str, addresses: Iterator[str]) -> None:
    left_over = len(list(addresses))
    if left_over:
        raise Refused(
            Code.FLEET_INVALID,
            f"{name!r} has {left_over} more addresses than instances; take them out, or raise the "
            "capacity",
        )
