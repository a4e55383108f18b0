"""Availability sets: scopes that are there before their VMs are."""

import uuid
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from fairwarning.azure_api.body_values import (
    location_of,
    object_at,
    refuse_moved,
    said,
    tags_of,
)
from fairwarning.azure_api.errors import ArmError, not_found
from fairwarning.azure_api.fleet_view import Machine, ids_of_kind, resource_names, scopes_of
from fairwarning.azure_api.instance_changes import begin_anew, mark_removed, revise
from fairwarning.azure_api.lists import listed
from fairwarning.azure_api.merge_patch import merged
from fairwarning.azure_api.notice_profiles import (
    policy_json,
    policy_of,
    refuse_too_new,
    without_too_new,
)
from fairwarning.azure_api.paths import ResourcePath, resource_id, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.body import not_changeable
from fairwarning.azure_api.virtual_machines.state import machine_id
from fairwarning.core.commands import ChangePolicy
from fairwarning.core.model import Policy, Roster, Scope, ScopeKind
from fairwarning.core.resources import AvailabilitySet, Place, expand
from fairwarning.core.roster import refuse_name
from fairwarning.engine.protocols import RecordChanged


async def put(arm: Arm, call: ArmCall) -> Reply:
    """200 also when it is new: Azure's clients take anything else for a failure."""
    refuse_too_new(call, object_at(call.body or {}, "properties"))
    while True:
        found = await _find(arm, call.path)
        if found is None and call.method == "PATCH":
            raise not_found(TYPE, call.path.name, call.path.group)
        try:
            if found is None:
                await _make(arm, call)
            else:
                await _change(arm, call, found)
        except RecordChanged:
            continue  # Somebody else was faster: merge with what he said.
        return await show(arm, call)


async def _make(arm: Arm, call: ArmCall) -> None:
    refuse_name(call.path.name)
    body = merged({}, said(call.body))
    tags_of(body)
    update_domains, fault_domains = domains_of(body, (5, 2))
    wanted = AvailabilitySet(
        name=call.path.name,
        update_domains=update_domains,
        fault_domains=fault_domains,
        policy=policy_of(object_at(body, "properties"), Policy()),
        place=Place(
            subscription=call.path.subscription,
            resource_group=call.path.group,
            location=location_of(body),
            origin="arm",
        ),
    )
    (scope,) = expand(wanted)
    left = await scopes_of(
        arm, ScopeKind.AVAILABILITY_SET, call.path.subscription, call.path.group, wanted.name
    )
    if left:
        # The scope of one that was deleted; it stays, and begins anew.
        await begin_anew(arm, call, left[0].id, scope.roster)
    else:
        await arm.control.engine.create([scope], by=call.by, why=call.why)
    await arm.shelf.put(_new_kept(arm, call.path.id, wanted.name, body), by=call.by)


class StandingSet(NamedTuple):
    scope: Scope
    kept: Kept | None


async def _change(arm: Arm, call: ArmCall, found: StandingSet) -> None:
    asked = said(call.body)
    roster = found.scope.roster
    if asked.get("location") is not None:
        refuse_moved(roster.resource, roster.resource_group, roster.location, location_of(asked))
    domains = domains_of(asked, (roster.update_domains, roster.fault_domains))
    _refuse_domains(roster, domains)
    path = call.path.named(roster.resource)
    before = found.kept or _new_kept(arm, path.id, roster.resource, {"location": roster.location})
    body = merged(before.body, asked)
    tags_of(body)
    policy = policy_of(object_at(asked, "properties"), roster.policy)
    if policy != roster.policy:
        command = ChangePolicy(policy=policy)
        await arm.control.engine.submit(found.scope.id, command, by=call.by, why=call.why)
    await revise(arm, call, found.scope.id, lambda now: _with_domains(now, domains))
    await arm.shelf.put(replace(before, body=body), by=call.by)


def _with_domains(roster: Roster, domains: tuple[int, int]) -> Roster:
    _refuse_domains(roster, domains)
    return replace(roster, update_domains=domains[0], fault_domains=domains[1])


def _refuse_domains(roster: Roster, domains: tuple[int, int]) -> None:
    """Who is placed stays where he is."""
    if not roster.live:
        return
    if domains[0] != roster.update_domains:
        raise not_changeable("platformUpdateDomainCount")
    if domains[1] != roster.fault_domains:
        raise not_changeable("platformFaultDomainCount")


def _new_kept(arm: Arm, id: str, name: str, body: Json) -> Kept:
    return Kept(
        id=id,
        type=TYPE,
        name=name,
        body=body,
        created_ms=arm.control.clock.now(),
        unique_id=str(uuid.uuid4()),
    )


async def show(arm: Arm, call: ArmCall) -> Reply:
    found = await _find(arm, call.path)
    if found is None:
        raise not_found(TYPE, call.path.name, call.path.group)
    return Reply(200, _shown(call, found))


async def delete(arm: Arm, call: ArmCall) -> Reply:
    found = await _find(arm, call.path)
    if found is None:
        return Reply(204)
    if found.scope.roster.live:
        raise ArmError(
            409,
            "OperationNotAllowed",
            f"Availability Set '{found.scope.roster.resource}' cannot be deleted. Before deleting "
            "an Availability Set please ensure that it does not contain any VM.",
        )
    await mark_removed(arm, call, found.scope.id)
    await arm.shelf.drop_any(call.path.id, by=call.by)
    return Reply(200)


async def list_all(arm: Arm, call: ArmCall) -> Reply:
    return await listed(call, [_shown(call, each) async for each in _all(arm, call.path)])


async def _all(arm: Arm, path: ResourcePath) -> AsyncIterator[StandingSet]:
    """Those that are kept, and those that have instances."""
    kind = ScopeKind.AVAILABILITY_SET
    names = resource_names(ids_of_kind(arm, kind, path.subscription, path.group))
    start = path.id if path.group else path.place
    async for kept in arm.shelf.below(start):
        if kept.type.lower() == TYPE.lower():
            names.append((resource_path(kept.id).group, kept.name))
    once = {(group.lower(), name.lower()): (group, name) for group, name in names}
    for group, name in once.values():
        found = await standing_set(arm, path.subscription, group, name)
        if found is not None:
            yield found


async def _find(arm: Arm, path: ResourcePath) -> StandingSet | None:
    return await standing_set(arm, path.subscription, path.group, path.name)


def _shown(call: ArmCall, found: StandingSet) -> Json:
    body = set_json(found)
    return {**body, "properties": without_too_new(call, body["properties"])}


# An availability set as it stands: its scope, and what its owner said of it.
TYPE = "Microsoft.Compute/availabilitySets"
_SET = TYPE.lower()
# An availability set as ARM shows it, and what its body says of domains. Pure.
UPDATE_DOMAINS_MAX = 20
FAULT_DOMAINS_MAX = 3
_DERIVED = ("platformUpdateDomainCount", "platformFaultDomainCount", "virtualMachines")


def set_json(found: StandingSet) -> Json:
    roster = found.scope.roster
    body = {} if found.kept is None else found.kept.body
    said = object_at(body, "properties")
    machines = [Machine(found.scope, each) for each in roster.live]
    properties: Json = {
        **{name: value for name, value in said.items() if name not in _DERIVED},
        "platformUpdateDomainCount": roster.update_domains,
        "platformFaultDomainCount": roster.fault_domains,
        "virtualMachines": [{"id": machine_id(each)} for each in machines],
    }
    policy = object_at(said, "scheduledEventsPolicy")
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
    """Update and fault domains; what is not said is as usual. Raises ArmError."""
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
        raise ArmError(
            400,
            "InvalidParameter",
            f"The value '{str(value)[:40]}' of parameter '{name}' is out of range; it must be a "
            f"number from 1 to {most}.",
            target=name,
        )
    return value


async def standing_set(arm: Arm, subscription: str, group: str, name: str) -> StandingSet | None:
    kept = await arm.shelf.find(resource_id(subscription, group, TYPE, name))
    spelled = name if kept is None else kept.name
    scopes = await scopes_of(arm, ScopeKind.AVAILABILITY_SET, subscription, group, spelled)
    if not scopes or (kept is None and not scopes[0].roster.live):
        return None
    return StandingSet(scopes[0], kept)


ROUTES: Routes = {
    ("PUT", _SET, ""): put,
    ("PATCH", _SET, ""): put,
    ("GET", _SET, ""): show,
    ("DELETE", _SET, ""): delete,
    ("GET", "microsoft.compute", "availabilitysets"): list_all,
}
