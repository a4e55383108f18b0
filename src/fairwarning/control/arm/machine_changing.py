"""A PUT or PATCH of a VM that is there: what is said changes, the rest stays."""

from msgspec.structs import replace

from fairwarning.control.arm.attachments import attach, interfaces_for
from fairwarning.control.arm.bodies import (
    location_of,
    object_at,
    refuse_moved,
    said,
    tags_of,
)
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.instance_changes import change_instance
from fairwarning.control.arm.kept_machines import Standing, machine_id
from fairwarning.control.arm.machine_addresses import (
    all_addresses,
    exchanged,
    interfaces_of,
)
from fairwarning.control.arm.machine_answers import refuse_going, written
from fairwarning.control.arm.machine_json import declared_body, membership_json
from fairwarning.control.arm.machine_making import new_kept
from fairwarning.control.arm.machine_reading import (
    refuse_changed,
    refuse_changed_word,
    refuse_own_policy,
    wanted_of,
    without_secrets,
)
from fairwarning.control.arm.merging import merged
from fairwarning.control.arm.profiles import policy_of, terms_of
from fairwarning.control.arm.shelf import Kept
from fairwarning.core.commands import ChangePolicy
from fairwarning.core.model import Instance, ScopeKind


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
