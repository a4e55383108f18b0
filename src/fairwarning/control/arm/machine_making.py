"""A VM that is made through ARM: first in the fleet, then what its owner said beside it."""

import uuid

from fairwarning.control.arm.attachments import attach, interfaces_for
from fairwarning.control.arm.bodies import object_at, said
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply
from fairwarning.control.arm.kept_machines import TYPE
from fairwarning.control.arm.machine_addresses import all_addresses
from fairwarning.control.arm.machine_answers import written
from fairwarning.control.arm.machine_places import add_machine
from fairwarning.control.arm.machine_reading import (
    refuse_own_policy,
    wanted_of,
    without_secrets,
)
from fairwarning.control.arm.merging import merged
from fairwarning.control.arm.profiles import policy_of, terms_of
from fairwarning.control.arm.shelf import Kept
from fairwarning.core.model import Instance, InstanceName, Policy
from fairwarning.core.roster import refuse_name


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
