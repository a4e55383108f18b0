"""What an owner asks of a VM: each is an operation that lasts as long as its event."""

from collections.abc import Mapping

from fairwarning.control.arm.call import Arm, ArmCall, Handler, Reply
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.instance_views import pending_maintenance
from fairwarning.control.arm.kept_machines import Standing, machine_id
from fairwarning.control.arm.machine_answers import existing, refuse_going
from fairwarning.control.arm.operations import accepted
from fairwarning.control.scale_sets import operate_all
from fairwarning.core.model import EventId, OperationKind, Priority

_KINDS = {
    "restart": OperationKind.RESTART,
    "redeploy": OperationKind.REDEPLOY,
    "reimage": OperationKind.REIMAGE,
    "start": OperationKind.START,
    "poweroff": OperationKind.STOP,
    "deallocate": OperationKind.DEALLOCATE,
}


async def operate(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    refuse_going(call, found)
    events = await _operated(arm, call, found, _KINDS[call.path.tail])
    return await _accepted(arm, call, found, events)


async def reapply(arm: Arm, call: ArmCall) -> Reply:
    """The state of a VM is what its owner said already: there is nothing to do."""
    found = await existing(arm, call.path)
    refuse_going(call, found)
    return await _accepted(arm, call, found, ())


async def simulate_eviction(arm: Arm, call: ArmCall) -> Reply:
    found = await existing(arm, call.path)
    refuse_going(call, found)
    if found.machine.instance.priority is not Priority.SPOT:
        raise ArmError(
            409,
            "OperationNotAllowed",
            "Operation 'simulateEviction' is allowed only for Spot Virtual Machines.",
        )
    await _operated(arm, call, found, OperationKind.EVICT)
    return Reply(204)


async def perform_maintenance(arm: Arm, call: ArmCall) -> Reply:
    """The owner has the platform's maintenance now, instead of when it is due."""
    found = await existing(arm, call.path)
    refuse_going(call, found)
    pending = pending_maintenance(found.machine)[:1]
    if not pending:
        raise ArmError(
            409,
            "OperationNotAllowed",
            f"Operation 'performMaintenance' is not allowed on VM '{found.machine.instance.name}' "
            "since no maintenance is pending for it.",
        )
    await arm.control.engine.approve(pending[0].id, by=call.by, why=call.why)
    return await _accepted(arm, call, found, (pending[0].id,))


async def _operated(
    arm: Arm, call: ArmCall, found: Standing, kind: OperationKind
) -> tuple[EventId, ...]:
    machine = found.machine
    target = (machine.scope.id, machine.instance.name)
    return await operate_all(arm.control, [target], kind, by=call.by, why=call.why)


async def _accepted(arm: Arm, call: ArmCall, found: Standing, events: tuple[EventId, ...]) -> Reply:
    operation = await arm.operations.begin(
        call, verb=call.path.tail, target=machine_id(found.machine), events=events
    )
    return accepted(call, operation, found.machine.scope.roster.location)


ACTIONS: Mapping[str, Handler] = {
    **dict.fromkeys(_KINDS, operate),
    "reapply": reapply,
    "simulateeviction": simulate_eviction,
    "performmaintenance": perform_maintenance,
}
