"""The end of a whole scale set. It lasts until the last instance is gone, and so does the set."""

from msgspec.structs import replace

from fairwarning.control.arm.call import Arm, ArmCall
from fairwarning.control.arm.instance_changes import mark_removed
from fairwarning.control.arm.kept_scale_sets import Standing, new_kept
from fairwarning.control.arm.operations import Operation
from fairwarning.control.arm.scale_set_actions import operate
from fairwarning.control.arm.scale_set_json import true_body
from fairwarning.core.model import OperationKind


async def delete(arm: Arm, call: ArmCall, found: Standing) -> Operation:
    """Every instance is told as its own model says. Asking again joins what is under way."""
    if found.is_going and found.operation is not None and not found.members:
        return found.operation
    events = await operate(arm, call, found.machines, OperationKind.DELETE)
    # Only now: if the deletes are refused, or the store is down, the set is not removed.
    for group in found.groups:
        await mark_removed(arm, call, group.id)
    operation = await arm.operations.begin(call, verb="delete", target=found.id, events=events)
    kept = found.kept or new_kept(found, arm.control.clock.now())
    kept = replace(kept, body=true_body(found), is_going=True, operation=operation.id)
    await arm.shelf.put(kept, by=call.by)
    return operation
