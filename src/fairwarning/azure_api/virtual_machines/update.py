"""A PUT or PATCH of a VM that is there: what is said changes, the rest stays."""

import uuid

from msgspec.structs import replace

from fairwarning.azure_api.body_values import (
    location_of,
    object_at,
    refuse_moved,
    said,
    tags_of,
)
from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.instance_changes import change_instance
from fairwarning.azure_api.merge_patch import merged
from fairwarning.azure_api.networks.attachments import attach, interfaces_for
from fairwarning.azure_api.notice_profiles import policy_of, terms_of
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.virtual_machines.addresses import (
    all_addresses,
    exchanged,
    interfaces_of,
)
from fairwarning.azure_api.virtual_machines.body import (
    refuse_changed,
    refuse_changed_word,
    refuse_own_policy,
    wanted_of,
    without_secrets,
)
from fairwarning.azure_api.virtual_machines.placement import add_machine
from fairwarning.azure_api.virtual_machines.render import (
    declared_body,
    membership_json,
    refuse_going,
    written,
)
from fairwarning.azure_api.virtual_machines.state import TYPE, Standing, machine_id
from fairwarning.core.commands import ChangePolicy
from fairwarning.core.model import Instance, InstanceName, Policy, ScopeKind
from fairwarning.core.roster import refuse_name


async def change(arm: Arm, call: ArmCall, found: Standing) -> Reply:
    """Raises RecordChanged if somebody else was faster; ask again with what is there then."""
    refuse_going(call, found)
    asked = said(call.body)
    _refuse_fixed(call, found.machine, asked)
    before = found.kept or _first_kept(arm, found.machine)
    body = without_secrets(merged(before.body, asked))
    wanted = wanted_of(body)
    terms_of(object_at(body, "properties"))
    interfaces = await interfaces_for(arm, before.id, body)
    tags = wanted.tags if asked.get("tags") is not None else None
    had = all_addresses(await interfaces_of(arm, before.body))
    await _change_instance(arm, call, found.machine, tags, had, all_addresses(interfaces))
    await _change_policy(arm, call, found.machine, object_at(asked, "properties"))
    operation = await arm.operations.begin(call, verb="update", target=before.id)
    kept = replace(before, body=body, operation=operation.id)
    await arm.shelf.put(kept, by=call.by)
    await attach(arm, interfaces, before.id, by=call.by)
    return await written(arm, call, 200, operation)


def _first_kept(arm: Arm, machine: Machine) -> Kept:
    """Of a VM that somebody else declared, and that is changed through ARM for the first time."""
    body = declared_body(machine)
    return new_kept(arm, machine_id(machine), machine.instance.name, body, "")


def _refuse_fixed(call: ArmCall, machine: Machine, asked: Json) -> None:
    """What a VM is made with and keeps for its life."""
    properties = object_at(asked, "properties")
    roster = machine.scope.roster
    if asked.get("location") is not None:
        refuse_moved(call.path.name, call.path.group, roster.location, location_of(asked))
    if asked.get("tags") is not None:
        tags_of(asked)
    membership = membership_json(machine)
    for name in ("availabilitySet", "virtualMachineScaleSet"):
        refuse_changed(properties, name, membership.get(name, {}).get("id", ""))
    refuse_changed_word(properties, "priority", machine.instance.priority.value)
    refuse_changed_word(properties, "evictionPolicy", machine.instance.eviction.value)
    if roster.kind is not ScopeKind.VM:
        refuse_own_policy(properties, f"{roster.kind} '{roster.resource}'")


async def _change_instance(
    arm: Arm,
    call: ArmCall,
    machine: Machine,
    tags: dict[str, str] | None,
    had: tuple[str, ...],
    has: tuple[str, ...],
) -> None:
    """Without tags: as they were. The addresses are those of its interfaces, before and now."""

    def changed(instance: Instance) -> Instance:
        return replace(
            instance,
            tags=instance.tags if tags is None else tags,
            addresses=exchanged(instance.addresses, had, has),
        )

    if changed(machine.instance) != machine.instance:
        await change_instance(arm, call, machine.scope.id, machine.instance.name, changed)


async def _change_policy(arm: Arm, call: ArmCall, machine: Machine, asked: Json) -> None:
    before = machine.scope.roster.policy
    policy = policy_of(asked, before)
    if policy != before:
        command = ChangePolicy(policy=policy)
        await arm.control.engine.submit(machine.scope.id, command, by=call.by, why=call.why)


# A VM that is made through ARM: first in the fleet, then what its owner said beside it.
async def make(arm: Arm, call: ArmCall) -> Reply:
    """Raises ArmError or Refused; then nothing was made."""
    refuse_name(call.path.name)
    body = without_secrets(merged({}, said(call.body)))
    properties = object_at(body, "properties")
    wanted = wanted_of(body)
    terms_of(properties)
    if wanted.availability_set or wanted.scale_set:
        refuse_own_policy(properties, "an availability set or a scale set")
    interfaces = await interfaces_for(arm, call.path.id, body)
    instance = Instance(
        name=InstanceName(call.path.name),
        addresses=all_addresses(interfaces),
        tags=wanted.tags,
        priority=wanted.priority,
        eviction=wanted.eviction,
    )
    await add_machine(arm, call, wanted, instance, policy_of(properties, Policy()))
    operation = await arm.operations.begin(call, verb="create", target=call.path.id)
    await arm.shelf.put(new_kept(arm, call.path.id, instance.name, body, operation.id), by=call.by)
    await attach(arm, interfaces, call.path.id, by=call.by)
    return await written(arm, call, 201, operation)


def new_kept(arm: Arm, id: str, name: str, body: Json, operation: str) -> Kept:
    return Kept(
        id=id,
        type=TYPE,
        name=name,
        body=body,
        created_ms=arm.control.clock.now(),
        unique_id=str(uuid.uuid4()),
        operation=operation,
    )
