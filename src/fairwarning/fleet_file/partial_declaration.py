"""A partial declaration keeps the present value of each key that it does not contain.

`Place.left_out` and `Member.left_out` have the keys that were not written. Missing values of a
resource are filled in before its instances are placed. Missing values of an instance are filled in
afterwards, because only an existing instance has values to keep. A resource that was removed is
made new. It keeps only its driver, its hooks, and the handles of instances that its roster still
contains, so that a declaration does not change by accident what acts on its instances.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from fairwarning.core.model import Instance, InstanceName, Policy, Roster, Scope, ScopeKind
from fairwarning.core.pending_deletions import leavers
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
)

R = TypeVar("R", AvailabilitySet, ScaleSet, CloudService)

MEMBER_KEYS = frozenset({"addresses", "tags", "handle"})
_SAME_NAMES = ("update_domains", "fault_domains")
_OF_INSTANCES = ("addresses", "tags", "priority", "eviction")


def stands(groups: Iterable[Scope]) -> bool:
    """Return whether the resource of these scopes exists. A set without instances may exist; a VM
    without its instance does not.
    """
    rosters = [each.roster for each in groups]
    if any(each.live for each in rosters):
        return True
    return not all(each.is_removed or each.kind is ScopeKind.VM for each in rosters)


def completed(resource: Resource, groups: Sequence[Scope]) -> Resource:
    """Return the resource with its present values for all keys that the declaration leaves out.
    `groups` are the scopes of the resource.
    """
    if not groups:
        return resource
    roster = next((each.roster for each in groups if each.roster.live), groups[0].roster)
    resource = dataclasses.replace(resource, place=_place(resource, roster))
    if not stands(groups):
        return resource
    left_out = resource.place.left_out
    place = dataclasses.replace(
        resource.place,
        location=roster.location if "location" in left_out else resource.place.location,
        test=roster.test if "test" in left_out else resource.place.test,
    )
    resource = dataclasses.replace(resource, place=place, policy=_policy(resource, roster))
    match resource:
        case VirtualMachine():
            return resource
        case AvailabilitySet():
            return _filled(resource, roster, _members(roster))
        case ScaleSet():
            return _scale_set(resource, roster, groups)
        case CloudService():
            more = {"roles": _roles(roster.live), **_likeness(groups)}
            return _filled(resource, roster, more)


def kept(roster: Roster, scope: Scope | None, resource: Resource) -> Roster:
    """Return the roster with the present values of each instance for all keys that the declaration
    leaves out.
    """
    if scope is None:
        return roster
    before, everyone = scope.roster, roster.live
    if isinstance(resource, CloudService) and "roles" in resource.place.left_out and before.live:
        everyone = tuple(each for each in everyone if before.has_live(each.name))
    instances = (_kept(each, before, _left_out(resource, each.name)) for each in everyone)
    return replace(roster, instances={each.name: each for each in instances})


def _place(resource: Resource, roster: Roster) -> Place:
    place = resource.place
    if not place.says_hooks:
        place = dataclasses.replace(place, hooks=roster.hooks)
    if place.says_driver:
        return place
    settings = roster.driver_settings
    return dataclasses.replace(place, driver=roster.driver, driver_settings=settings)


def _policy(resource: Resource, roster: Roster) -> Policy:
    left_out, before = resource.place.left_out, roster.policy
    agreed = before if "approve" in left_out else resource.policy
    notice_ms = before.notice_ms if "notice" in left_out else resource.policy.notice_ms
    return replace(agreed, notice_ms=notice_ms)


def _scale_set(resource: ScaleSet, roster: Roster, groups: Sequence[Scope]) -> ScaleSet:
    """Return the scale set with its present values for missing keys. Instances that are being
    deleted do not count.
    """
    staying = sum(len(each.roster.live) - len(leavers(each)) for each in groups)
    kind = Orchestration.UNIFORM if roster.is_numbered else Orchestration.FLEXIBLE
    more = {
        "capacity": staying,
        "orchestration": kind,
        "terminate_notice": roster.model.terminate_notice_ms,
        **_likeness(groups),
    }
    resource = _filled(resource, roster, more)
    if resource.orchestration is Orchestration.FLEXIBLE:
        suffixes = distinct_suffixes(resource.name, resource.capacity)
        return dataclasses.replace(resource, suffixes=suffixes)
    return resource


def _filled(resource: R, roster: Roster, more: dict[str, Any]) -> R:
    """Return the resource with missing values filled in. `more` has present values by their keys in
    a fleet file.
    """
    values = {key: getattr(roster, key) for key in _SAME_NAMES} | more
    fields = {"terminate_notice": "terminate_notice_ms", "instances": "members"}
    missing = {
        fields.get(key, key): value
        for key, value in values.items()
        if key in resource.place.left_out
    }
    return dataclasses.replace(resource, **missing)


def _likeness(groups: Sequence[Scope]) -> dict[str, Any]:
    """Return the tags, priority and eviction that new instances get, which are those of the last
    instance.
    """
    everyone = [each for scope in groups for each in scope.roster.instances.values()]
    last = next(reversed([each for each in everyone if each.is_live] or everyone), None)
    if last is None:
        return {}
    return {"tags": last.tags, "priority": last.priority, "eviction": last.eviction}


def _members(roster: Roster) -> dict[str, Any]:
    members = tuple(Member(name=each.name, left_out=MEMBER_KEYS) for each in roster.live)
    return {"instances": members}


def _roles(instances: Iterable[Instance]) -> dict[str, int]:
    roles: dict[str, int] = {}
    for each in instances:
        role, _, number = each.name.rpartition("_IN_")
        roles[role] = max(roles.get(role, 0), int(number) + 1)
    return roles


def _left_out(resource: Resource, name: InstanceName) -> frozenset[str]:
    left_out = resource.place.left_out
    if not isinstance(resource, AvailabilitySet):
        return left_out
    own = next((each.left_out for each in resource.members if each.name == name), MEMBER_KEYS)
    # The tags of a member come from the set and from the member, so either may give them.
    return own if "tags" in left_out else own - {"tags"}


def _kept(instance: Instance, before: Roster, left_out: frozenset[str]) -> Instance:
    known = before.instances.get(instance.name)
    if known is None:
        return instance
    if "handle" in left_out:
        instance = replace(instance, handle=known.handle)
    if known.is_live:
        same = {key: getattr(known, key) for key in _OF_INSTANCES if key in left_out}
        instance = replace(instance, **same)
    return instance
