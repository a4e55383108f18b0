"""Creates and updates scale sets. It changes the fleet first and stores the body after that."""

import uuid
from collections.abc import Sequence

from msgspec.structs import replace

from fairwarning.azure_api.body_values import object_at, refuse_moved
from fairwarning.azure_api.compute_defaults import completed_set
from fairwarning.azure_api.fleet_view import scopes_of_resource
from fairwarning.azure_api.instance_changes import place_of, reuse_scope, update_roster
from fairwarning.azure_api.merge_patch import merge
from fairwarning.azure_api.networks.addresses import allocate, release
from fairwarning.azure_api.notice_profiles import read_policy
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.scale_sets.body import (
    WantedScaleSet,
    read_wanted,
    refuse_changed,
    refuse_name,
    refuse_too_many,
)
from fairwarning.azure_api.scale_sets.render import current_body
from fairwarning.azure_api.scale_sets.state import (
    TYPE,
    ScaleSetState,
    first_record,
    get_scale_set,
    refuse_deleting,
)
from fairwarning.core.identifiers import prefix_of
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import (
    EventId,
    Instance,
    InstanceName,
    Model,
    Policy,
    Roster,
    Scope,
    ScopeKind,
)
from fairwarning.core.resources import SUFFIX_CHARS, Orchestration, ScaleSet, expand
from fairwarning.core.scale_sets import next_number
from fairwarning.operator_api import scale_sets


async def update(arm: Arm, call: ArmCall, found: ScaleSetState, requested: Json) -> ScaleSetState:
    """Changes the members that the body has, and keeps all others.

    Raises ArmError, Refused or Problem.
    """
    refuse_deleting(found)
    before = current_body(found)
    body = completed_set(merge(before, requested))
    was, wanted = read_wanted(before), read_wanted(body)
    refuse_moved(found.roster.resource, call.path.group, was.location, wanted.location)
    refuse_changed(was, wanted)
    refuse_too_many(call.path.name, wanted)
    policy = read_policy(object_at(requested, "properties"), found.roster.policy)
    addresses = await addresses_for(arm, call, wanted, wanted.capacity - was.capacity)
    try:
        await _change_rules(arm, call, found, policy, was, wanted)
        await _change_prefix(arm, call, found, wanted.computer_name_prefix)
        events = await _resize(arm, call, found, was, wanted, addresses)
        # The upgrade follows the resize, so that deleted instances keep their old notice.
        if wanted.mode != "Manual":
            await scale_sets.upgrade(arm.control, found.groups, None, by=call.by, why=call.why)
    finally:
        await release_all(arm, call, addresses)
    operation = await arm.operations.begin(call, verb="update", target=found.id, events=events)
    record = found.record or first_record(found, arm.control.clock.now())
    record = replace(record, body=body, is_deleting=False, operation=operation.id)
    await arm.resources.put(record, by=call.by)
    return await get_scale_set(arm, call.path)


async def _change_rules(
    arm: Arm,
    call: ArmCall,
    found: ScaleSetState,
    policy: Policy,
    was: WantedScaleSet,
    wanted: WantedScaleSet,
) -> None:
    control, roster = arm.control, found.roster
    if policy != roster.policy:
        await scale_sets.change_policy(control, found.groups, policy, by=call.by, why=call.why)
    is_same = was.fingerprint == wanted.fingerprint
    profile = roster.model.profile if is_same else wanted.fingerprint
    if not is_same or was.terms != wanted.terms:
        await scale_sets.change_model(
            control,
            found.groups,
            terminate_notice_ms=wanted.terms.terminate_notice_ms,
            reimage_notice_ms=wanted.terms.reimage_notice_ms,
            profile=profile,
            by=call.by,
            why=call.why,
        )


async def _change_prefix(arm: Arm, call: ArmCall, found: ScaleSetState, prefix: str) -> None:
    for scope in found.groups:
        if prefix and prefix_of(scope.roster) != prefix:
            await update_roster(
                arm, call, scope.id, lambda r: replace(r, computer_name_prefix=prefix)
            )


async def _resize(
    arm: Arm,
    call: ArmCall,
    found: ScaleSetState,
    was: WantedScaleSet,
    wanted: WantedScaleSet,
    addresses: Sequence[str],
) -> tuple[EventId, ...]:
    """Changes the number of instances. Returns the events of the instances that are deleted."""
    if wanted.capacity == was.capacity:
        return ()
    pattern = Instance(
        name=InstanceName("any"),
        tags=wanted.tags,
        priority=wanted.priority,
        eviction=wanted.eviction,
    )
    resized = await scale_sets.resize(
        arm.control,
        found.groups,
        wanted.capacity,
        addresses=addresses,
        pattern=pattern,
        by=call.by,
        why=call.why,
    )
    return resized.events


async def create(arm: Arm, call: ArmCall, requested: Json) -> ScaleSetState:
    """Creates a scale set. If it raises ArmError, Refused or Problem, no scale set was created."""
    body = completed_set(merge({}, requested))
    wanted = read_wanted(body)
    refuse_name(call.path.name, wanted.orchestration)
    refuse_too_many(call.path.name, wanted)
    policy = read_policy(body.get("properties", {}), Policy())
    addresses = await addresses_for(arm, call, wanted, wanted.capacity)
    path, kind = call.path, ScopeKind.SCALE_SET
    empty = await scopes_of_resource(arm, kind, path.subscription, path.group, path.name)
    try:
        await _add_scopes(arm, call, scopes_for(arm, call, wanted, policy, addresses, empty), empty)
    finally:
        await release_all(arm, call, addresses)
    id = call.path.id
    operation = await arm.operations.begin(call, verb="create", target=id)
    before = await arm.resources.find(id)
    record = ResourceRecord(
        id=id,
        type=TYPE,
        name=call.path.name,
        body=body,
        created_ms=arm.control.clock.now(),
        unique_id=str(uuid.uuid4()),
        operation=operation.id,
        revision=before.revision if before else 0,
        stored=before.stored if before else "",
    )
    await arm.resources.delete_below(id, by=call.by)
    await arm.resources.put(record, by=call.by)
    return await get_scale_set(arm, call.path)


async def addresses_for(arm: Arm, call: ArmCall, wanted: WantedScaleSet, count: int) -> list[str]:
    """Claims an address for each of `count` new instances. The caller must call `release_all`.

    Returns no addresses if the scale set has no subnet.
    """
    if not wanted.subnet_id or count <= 0:
        return []
    return await allocate(arm, wanted.subnet_id, count, by=call.by)


async def release_all(arm: Arm, call: ArmCall, addresses: Sequence[str]) -> None:
    """Releases the claims of `addresses_for`. Addresses that no instance has are free again."""
    for address in addresses:
        await release(arm, address, "", by=call.by)


def scopes_for(
    arm: Arm,
    call: ArmCall,
    wanted: WantedScaleSet,
    policy: Policy,
    addresses: Sequence[str],
    empty: Sequence[Scope],
) -> list[Scope]:
    """Returns the placement groups of a new scale set.

    `empty` has the groups of a deleted scale set of the same name. The new instances are numbered
    after its instances.
    """
    is_flexible = wanted.orchestration is Orchestration.FLEXIBLE
    ids = (arm.control.engine.new_id() for _ in range(wanted.capacity if is_flexible else 0))
    resource = ScaleSet(
        name=call.path.name,
        capacity=wanted.capacity,
        orchestration=wanted.orchestration,
        addresses=tuple(addresses),
        suffixes=tuple(each[-SUFFIX_CHARS:].lower() for each in ids),
        tags=wanted.tags,
        terminate_notice_ms=wanted.terms.terminate_notice_ms,
        priority=wanted.priority,
        eviction=wanted.eviction,
        fault_domains=wanted.fault_domains,
        policy=policy,
        place=place_of(call, wanted.location),
    )
    first_number = next_number(scope.roster for scope in empty)
    return [_with_model(scope, wanted) for scope in expand(resource, first_number=first_number)]


def _with_model(scope: Scope, wanted: WantedScaleSet) -> Scope:
    """Returns the scope with the wanted model in its roster and in all its instances."""
    model = Model(
        terminate_notice_ms=wanted.terms.terminate_notice_ms,
        reimage_notice_ms=wanted.terms.reimage_notice_ms,
        profile=wanted.fingerprint,
    )
    instances = {name: replace(each, model=model) for name, each in scope.roster.instances.items()}
    roster = replace(
        scope.roster,
        model=model,
        computer_name_prefix=wanted.computer_name_prefix,
        instances=instances,
    )
    return replace(scope, roster=roster)


async def _add_scopes(
    arm: Arm, call: ArmCall, scopes: Sequence[Scope], empty: Sequence[Scope]
) -> None:
    """Adds the scopes to the fleet. It reuses the `empty` scopes of a deleted set first."""
    nobody = replace(scopes[0].roster, instances={}, next_number=0)
    rosters: list[Roster] = [each.roster for each in scopes]
    rosters += [nobody] * (len(empty) - len(scopes))
    for scope, roster in zip(empty, rosters, strict=False):
        await reuse_scope(arm, call, scope.id, _after_deleted(scope.roster, roster))
    further = scopes[len(empty) :]
    if empty:
        further = [_with_driver(each, empty[0].roster) for each in further]
    if further:
        await arm.control.engine.create(further, by=call.by, why=call.why)


def _with_driver(scope: Scope, first: Roster) -> Scope:
    settings = first.driver_settings
    roster = replace(scope.roster, driver=first.driver, driver_settings=settings, hooks=first.hooks)
    return replace(scope, roster=roster)


def _after_deleted(before: Roster, roster: Roster) -> Roster:
    """Returns the roster with a `next_number` above the numbers of all deleted instances.

    The core remembers deleted instances for a day, and adds no instance of the same name.
    """
    numbers = (number_of(roster, name) for name in before.instances)
    used = [number + 1 for number in numbers if number is not None]
    return replace(roster, next_number=max(roster.next_number, *used, 0))
