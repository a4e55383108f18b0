"""These handlers create, get, list, update and delete availability sets.

An availability set is one scope of the fleet. It can exist before it has any VMs.
"""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.body_values import (
    location_of,
    object_at,
    refuse_moved,
    resource_members,
    tags_of,
)
from fairwarning.azure_api.errors import invalid_parameter, not_allowed, not_changeable, not_found
from fairwarning.azure_api.etags import (
    Watch,
    checked_change,
    content_tag,
    refuse_unmatched,
    tag_header,
)
from fairwarning.azure_api.fleet_view import (
    FleetInstance,
    ids_of_kind,
    resource_names,
    scopes_of_resource,
)
from fairwarning.azure_api.instance_changes import (
    create_scope,
    locked_in_turn,
    mark_removed,
    place_of,
    update_roster,
)
from fairwarning.azure_api.lists import list_reply, read_expand
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.notice_profiles import (
    policy_json,
    read_policy,
    refuse_newer_members,
    without_newer_members,
)
from fairwarning.azure_api.paths import ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord, new_record
from fairwarning.azure_api.virtual_machines.state import vm_resource_id
from fairwarning.core.commands import ChangePolicy
from fairwarning.core.model import Policy, Roster, Scope, ScopeKind
from fairwarning.core.resources import AvailabilitySet, expand
from fairwarning.core.roster import refuse_name

TYPE = "Microsoft.Compute/availabilitySets"
_SET = TYPE.lower()
UPDATE_DOMAINS_MAX = 20
FAULT_DOMAINS_MAX = 3
_DEFAULT_DOMAINS = (5, 2)
"""The default numbers of update domains and fault domains, as on Azure."""
_DERIVED = ("platformUpdateDomainCount", "platformFaultDomainCount", "virtualMachines")


class AvailabilitySetState(NamedTuple):
    """An availability set. Its record is None if the set was not created through ARM."""

    scope: Scope
    record: ResourceRecord | None


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    """Creates or updates a set.

    The status is always 200, because clients accept no other status.
    """
    refuse_newer_members(call, object_at(call.body or {}, "properties"))

    async def write(own: Arm, watch: Watch) -> None:
        found = await _find_matching(own, call, watch)
        if found is not None:
            await _update(own, call, found)
        elif call.method == "PATCH":
            raise not_found(TYPE, call.path.name, call.path.group)
        else:
            await _create(own, call)

    async with locked_in_turn(arm, call, _lock(call)) as own:
        await checked_change(own, call, write)
    return await get(arm, call)


async def _find_matching(arm: Arm, call: ArmCall, watch: Watch) -> AvailabilitySetState | None:
    """Returns the set, or None. Raises ArmError if a condition of the call does not hold."""
    found = await _find(arm, call.path)
    refuse_unmatched(call, None if found is None else _tag(found))
    watch([] if found is None else [found.scope])
    return found


def _lock(call: ArmCall) -> str:
    return f"arm{call.path.id.lower()}"


def _tag(found: AvailabilitySetState) -> str:
    """Returns the ETag of a set. As on Azure, the body of the set does not contain it."""
    return content_tag(availability_set_json(found))


async def _create(arm: Arm, call: ArmCall) -> None:
    refuse_name(call.path.name)
    body = merge({}, resource_members(call.body))
    tags_of(body)
    update_domains, fault_domains = domains_of(body, _DEFAULT_DOMAINS)
    wanted = AvailabilitySet(
        name=call.path.name,
        update_domains=update_domains,
        fault_domains=fault_domains,
        policy=read_policy(object_at(body, "properties"), Policy()),
        place=place_of(call, location_of(body)),
    )
    (scope,) = expand(wanted)
    await create_scope(arm, call, scope)
    await arm.resources.put(_new_record(arm, call.path.id, wanted.name, body), by=call.by)


async def _update(arm: Arm, call: ArmCall, found: AvailabilitySetState) -> None:
    requested = resource_members(call.body)
    roster = found.scope.roster
    if requested.get("location") is not None:
        refuse_moved(
            roster.resource, roster.resource_group, roster.location, location_of(requested)
        )
    domains = domains_of(requested, (roster.update_domains, roster.fault_domains))
    _refuse_domains(roster, domains)
    path = call.path.named(roster.resource)
    before = found.record or _new_record(
        arm, path.id, roster.resource, {"location": roster.location}
    )
    body = merge(before.body, requested)
    tags_of(body)
    policy = read_policy(object_at(requested, "properties"), roster.policy)
    if policy != roster.policy:
        command = ChangePolicy(policy=policy)
        await arm.control.engine.submit(found.scope.id, command, by=call.by, why=call.why)
    await update_roster(arm, call, found.scope.id, lambda now: _with_domains(now, domains))
    await arm.resources.put(replace(before, body=body), by=call.by)


def _with_domains(roster: Roster, domains: tuple[int, int]) -> Roster:
    _refuse_domains(roster, domains)
    return replace(roster, update_domains=domains[0], fault_domains=domains[1])


def _refuse_domains(roster: Roster, domains: tuple[int, int]) -> None:
    """Raises ArmError if the number of domains would change while the set has instances."""
    if not roster.live:
        return
    if domains[0] != roster.update_domains:
        raise not_changeable("platformUpdateDomainCount")
    if domains[1] != roster.fault_domains:
        raise not_changeable("platformFaultDomainCount")


def _new_record(arm: Arm, id: str, name: str, body: Json) -> ResourceRecord:
    return new_record(arm.control.clock.now(), id=id, type=TYPE, name=name, body=body)


async def get(arm: Arm, call: ArmCall) -> Reply:
    found = await _find(arm, call.path)
    if found is None:
        raise not_found(TYPE, call.path.name, call.path.group)
    return Reply(200, _json(call, found), tag_header(_tag(found)))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    async with locked_in_turn(arm, call, _lock(call)) as own:
        return await checked_change(own, call, lambda own, watch: _delete(own, call, watch))


async def _delete(arm: Arm, call: ArmCall, watch: Watch) -> Reply:
    found = await _find_matching(arm, call, watch)
    if found is None:
        return Reply(204)
    if found.scope.roster.live:
        raise not_allowed(
            f"Availability Set '{found.scope.roster.resource}' cannot be deleted. Before deleting "
            "an Availability Set please ensure that it does not contain any VM."
        )
    await mark_removed(arm, call, found.scope.id)
    await arm.resources.delete_by_id(call.path.id, by=call.by)
    return Reply(200)


async def list_availability_sets(arm: Arm, call: ArmCall) -> Reply:
    read_expand(call, "virtualMachines/$ref")
    return await list_reply(call, [_json(call, each) async for each in _iterate(arm, call.path)])


async def _iterate(arm: Arm, path: ResourcePath) -> AsyncIterator[AvailabilitySetState]:
    """Yields the sets that were created through ARM and the sets that have instances."""
    kind = ScopeKind.AVAILABILITY_SET
    names = resource_names(ids_of_kind(arm, kind, path.subscription, path.group))
    start = path.id if path.group else path.place
    async for record in arm.resources.list_below(start):
        if record.type.lower() == TYPE.lower():
            names.append((resource_path(record.id).group, record.name))
    once = {(group.lower(), name.lower()): (group, name) for group, name in names}
    for group, name in once.values():
        found = await find_availability_set(arm, path.subscription, group, name)
        if found is not None:
            yield found


async def _find(arm: Arm, path: ResourcePath) -> AvailabilitySetState | None:
    return await find_availability_set(arm, path.subscription, path.group, path.name)


def _json(call: ArmCall, found: AvailabilitySetState) -> Json:
    body = availability_set_json(found)
    return {**body, "properties": without_newer_members(call, body["properties"])}


def availability_set_json(found: AvailabilitySetState) -> Json:
    roster = found.scope.roster
    body = {} if found.record is None else found.record.body
    stored = object_at(body, "properties")
    vms = [FleetInstance(found.scope, each) for each in roster.live]
    properties: Json = {
        **{name: value for name, value in stored.items() if name not in _DERIVED},
        "platformUpdateDomainCount": roster.update_domains,
        "platformFaultDomainCount": roster.fault_domains,
        "virtualMachines": [{"id": vm_resource_id(each)} for each in vms],
    }
    policy = object_at(stored, "scheduledEventsPolicy")
    if policy or roster.policy != Policy():
        properties["scheduledEventsPolicy"] = {**policy, **policy_json(roster.policy)}
    return {
        "name": roster.resource,
        "id": resource_id(roster.subscription, roster.resource_group, TYPE, roster.resource),
        "type": TYPE,
        "sku": {"name": "Classic"},
        "tags": {},
        **body,
        "location": roster.location,
        "properties": properties,
    }


def domains_of(body: Json, usual: tuple[int, int]) -> tuple[int, int]:
    """Returns the numbers of update and fault domains.

    `usual` has the defaults. Raises ArmError.
    """
    properties = object_at(body, "properties")
    return (
        _count(properties, "platformUpdateDomainCount", usual[0], UPDATE_DOMAINS_MAX),
        _count(properties, "platformFaultDomainCount", usual[1], FAULT_DOMAINS_MAX),
    )


def _count(properties: Json, name: str, usual: int, most: int) -> int:
    value: Any = properties.get(name)
    if value is None or value == usual:
        return usual
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise invalid_parameter(
            name,
            f"The value '{str(value)[:40]}' of parameter '{name}' is out of range; it must be a "
            f"number from 1 to {most}.",
        )
    return value


async def find_availability_set(
    arm: Arm, subscription: str, group: str, name: str
) -> AvailabilitySetState | None:
    record = await arm.resources.find(resource_id(subscription, group, TYPE, name))
    spelled = name if record is None else record.name
    scopes = await scopes_of_resource(arm, ScopeKind.AVAILABILITY_SET, subscription, group, spelled)
    if not scopes or (record is None and not scopes[0].roster.live):
        return None
    return AvailabilitySetState(scopes[0], record)


ROUTES: Routes = {
    ("PUT", _SET, ""): create_or_update,
    ("PATCH", _SET, ""): create_or_update,
    ("GET", _SET, ""): get,
    ("DELETE", _SET, ""): delete,
    ("GET", "microsoft.compute", "availabilitysets"): list_availability_sets,
}
