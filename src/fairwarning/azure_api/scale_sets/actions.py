"""What an owner asks of several instances of a scale set at once."""

from collections.abc import Sequence

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.fleet_view import Machine
from fairwarning.azure_api.instance_views import pending_maintenance
from fairwarning.azure_api.operations import accepted
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.scale_sets.render import instance_id_of
from fairwarning.azure_api.scale_sets.state import TYPE, Standing, ends_of, needed
from fairwarning.core.commands import Approve
from fairwarning.core.model import EventId, OperationKind
from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api import scale_sets

ALL = "*"
KINDS = {
    "delete": OperationKind.DELETE,
    "restart": OperationKind.RESTART,
    "redeploy": OperationKind.REDEPLOY,
    "reimage": OperationKind.REIMAGE,
    "reimageall": OperationKind.REIMAGE,
    "start": OperationKind.START,
    "poweroff": OperationKind.STOP,
    "deallocate": OperationKind.DEALLOCATE,
}


async def operate(
    arm: Arm, call: ArmCall, machines: Sequence[Machine], kind: OperationKind
) -> tuple[EventId, ...]:
    """The events to wait for. Whoever is being deleted already is not deleted again."""
    is_delete = kind is OperationKind.DELETE
    ends = [id for each in machines if is_delete for id in ends_of(each)]
    targets = [
        (each.scope.id, each.instance.name)
        for each in machines
        if not (is_delete and ends_of(each))
    ]
    if not targets:
        return tuple(ends)
    events = await scale_sets.operate_all(arm.control, targets, kind, by=call.by, why=call.why)
    return (*ends, *events)


async def perform_maintenance(
    arm: Arm, call: ArmCall, machines: Sequence[Machine]
) -> tuple[EventId, ...]:
    """Agrees to what the platform has announced for them; that may be nothing."""
    pending = {event.id: each for each in machines for event in pending_maintenance(each)}
    for event_id, machine in pending.items():
        command = Approve(event_id=event_id, by=call.by)
        try:
            await arm.control.engine.submit(machine.scope.id, command, by=call.by, why=call.why)
        except Refused as refused:
            if refused.code is not Code.EVENT_FINISHED:
                raise
    return tuple(pending)


def chosen(found: Standing, ids: Sequence[str]) -> list[Machine]:
    """`*` is everyone who is to stay. Raises ArmError, for one unknown id too."""
    if ALL in ids:
        return found.members
    known = {instance_id_of(each).lower(): each for each in found.machines}
    for id in ids:
        if id.lower() not in known:
            raise ArmError(
                400,
                "InvalidParameter",
                f"The provided instanceId {id[:80]} is not an active Virtual Machine Scale Set VM "
                "instanceId.",
                target="instanceIds",
            )
    return [known[id] for id in dict.fromkeys(each.lower() for each in ids)]


def ids_in(body: Json | None, *, needed: bool = False) -> list[str]:
    """The body's `instanceIds`; without any it is everyone, if that may be left out."""
    said = (body or {}).get("instanceIds")
    if said is None or said == []:
        if needed:
            raise _invalid("Required parameter 'instanceIds' is missing (null).")
        return [ALL]
    if not isinstance(said, list) or not all(isinstance(each, str | int) for each in said):
        raise _invalid("The parameter 'instanceIds' must be a list of strings.")
    return [str(each) for each in said]


def _invalid(message: str) -> ArmError:
    return ArmError(400, "InvalidParameter", message, target="instanceIds")


def _operation(verb: str, kind: OperationKind) -> Handler:
    async def handle(arm: Arm, call: ArmCall) -> Reply:
        found = await needed(arm, call.path)
        is_delete = kind is OperationKind.DELETE
        ids = ids_in(call.body, needed=is_delete)
        machines = found.machines if is_delete and ALL in ids else chosen(found, ids)
        events = await operate(arm, call, machines, kind)
        return await begun(arm, call, found, verb, events)

    return handle


async def _maintained(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    events = await perform_maintenance(arm, call, chosen(found, ids_in(call.body)))
    return await begun(arm, call, found, "performMaintenance", events)


async def _upgraded(arm: Arm, call: ArmCall) -> Reply:
    found = await needed(arm, call.path)
    machines = chosen(found, ids_in(call.body, needed=True))
    names = [each.instance.name for each in machines]
    await scale_sets.upgrade(arm.control, found.groups, names, by=call.by, why=call.why)
    return await begun(arm, call, found, "manualupgrade", ())


async def begun(
    arm: Arm, call: ArmCall, found: Standing, verb: str, events: Sequence[EventId]
) -> Reply:
    operation = await arm.operations.begin(call, verb=verb, target=found.id, events=events)
    return accepted(call, operation, found.roster.location)


ROUTES: Routes = {
    **{("POST", TYPE.lower(), verb): _operation(verb, kind) for verb, kind in KINDS.items()},
    ("POST", TYPE.lower(), "performmaintenance"): _maintained,
    ("POST", TYPE.lower(), "manualupgrade"): _upgraded,
}
