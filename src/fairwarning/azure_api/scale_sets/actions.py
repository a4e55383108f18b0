"""These handlers restart, delete, reimage or upgrade several instances of a scale set at once."""

from collections.abc import Sequence

from fairwarning.azure_api.errors import invalid_parameter
from fairwarning.azure_api.fleet_view import VIRTUAL_MACHINES, FleetInstance
from fairwarning.azure_api.instance_views import pending_maintenance
from fairwarning.azure_api.locks import locks_on_parts, own_locks, refuse_scopes
from fairwarning.azure_api.operations import accepted
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.scale_sets.render import instance_id_of
from fairwarning.azure_api.scale_sets.state import (
    TYPE,
    ScaleSetState,
    deletion_events,
    get_scale_set,
)
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


async def start_operations(
    arm: Arm, call: ArmCall, instances: Sequence[FleetInstance], kind: OperationKind
) -> tuple[EventId, ...]:
    """Starts an operation on each instance and returns the events to wait for.

    An instance that is already being deleted is not deleted again, but its events are returned.
    """
    is_delete = kind is OperationKind.DELETE
    if is_delete:
        await _refuse_locked(arm, call, instances)
    ends = [id for each in instances if is_delete for id in deletion_events(each)]
    targets = [
        (each.scope.id, each.instance.name)
        for each in instances
        if not (is_delete and deletion_events(each))
    ]
    if not targets:
        return tuple(ends)
    events = await scale_sets.operate_all(arm.control, targets, kind, by=call.by, why=call.why)
    return (*ends, *events)


async def _refuse_locked(arm: Arm, call: ArmCall, instances: Sequence[FleetInstance]) -> None:
    """Raises ArmError if one of the instances has a lock of its own."""
    if not instances:
        return
    roster = instances[0].scope.roster
    place = roster.subscription, roster.resource_group
    whole = resource_id(*place, TYPE, roster.resource)
    names = [instance_id_of(each) for each in instances]
    locked = await locks_on_parts(arm, whole, [f"{whole}/virtualMachines/{n}" for n in names])
    if not roster.is_numbered:
        # An instance of a flexible set is a VM too, and may be locked as such.
        vms = [resource_id(*place, VIRTUAL_MACHINES, name) for name in names]
        locked += await own_locks(arm, vms)
    refuse_scopes(call.path.id, "delete", locked)


async def approve_maintenance(
    arm: Arm, call: ArmCall, instances: Sequence[FleetInstance]
) -> tuple[EventId, ...]:
    """Approves all pending maintenance of the instances. Returns the events of the maintenance."""
    pending = {event.id: each for each in instances for event in pending_maintenance(each)}
    for event_id, vm in pending.items():
        command = Approve(event_id=event_id, by=call.by)
        try:
            await arm.control.engine.submit(vm.scope.id, command, by=call.by, why=call.why)
        except Refused as refused:
            if refused.code is not Code.EVENT_FINISHED:
                raise
    return tuple(pending)


def choose_instances(found: ScaleSetState, ids: Sequence[str]) -> list[FleetInstance]:
    """Returns the instances with these ids. Raises ArmError if an id is unknown.

    The id `*` means all instances that are not being deleted, and that are not protected from
    actions on the whole set.
    """
    if ALL in ids:
        return found.open_to_actions
    known = {instance_id_of(each).lower(): each for each in found.instances}
    for id in ids:
        if id.lower() not in known:
            raise invalid_parameter(
                "instanceIds",
                f"The provided instanceId {id[:80]} is not an active Virtual Machine Scale Set VM "
                "instanceId.",
            )
    return [known[id] for id in dict.fromkeys(each.lower() for each in ids)]


def read_instance_ids(body: Json | None, *, is_required: bool = False) -> list[str]:
    """Returns `instanceIds` of a body, or `["*"]` (all instances) if the body has none.

    If `is_required`, the body must have ids. Raises ArmError if required ids are missing,
    or if they are not valid.
    """
    ids = (body or {}).get("instanceIds")
    if ids is None or ids == []:
        if is_required:
            raise invalid_parameter(
                "instanceIds", "Required parameter 'instanceIds' is missing (null)."
            )
        return [ALL]
    if not isinstance(ids, list) or not all(isinstance(each, str | int) for each in ids):
        raise invalid_parameter(
            "instanceIds", "The parameter 'instanceIds' must be a list of strings."
        )
    return [str(each) for each in ids]


def _operation(verb: str, kind: OperationKind) -> Handler:
    async def handle(arm: Arm, call: ArmCall) -> Reply:
        found = await get_scale_set(arm, call.path)
        is_delete = kind is OperationKind.DELETE
        ids = read_instance_ids(call.body, is_required=is_delete)
        instances = choose_instances(found, ids)
        if is_delete and ALL in ids:
            # The operation also waits for those that are being deleted already.
            instances += [each for each in found.instances if deletion_events(each)]
        events = await start_operations(arm, call, instances, kind)
        return await accepted_reply(arm, call, found, verb, events)

    return handle


async def _perform_maintenance(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    events = await approve_maintenance(
        arm, call, choose_instances(found, read_instance_ids(call.body))
    )
    return await accepted_reply(arm, call, found, "performMaintenance", events)


async def _upgrade(arm: Arm, call: ArmCall) -> Reply:
    found = await get_scale_set(arm, call.path)
    instances = choose_instances(found, read_instance_ids(call.body, is_required=True))
    names = [each.instance.name for each in instances]
    await scale_sets.upgrade(arm.control, found.groups, names, by=call.by, why=call.why)
    return await accepted_reply(arm, call, found, "manualupgrade", ())


async def accepted_reply(
    arm: Arm, call: ArmCall, found: ScaleSetState, verb: str, events: Sequence[EventId]
) -> Reply:
    operation = await arm.operations.begin(call, verb=verb, target=found.id, events=events)
    return accepted(call, operation, found.roster.location)


ROUTES: Routes = {
    **{("POST", TYPE.lower(), verb): _operation(verb, kind) for verb, kind in KINDS.items()},
    ("POST", TYPE.lower(), "performmaintenance"): _perform_maintenance,
    ("POST", TYPE.lower(), "manualupgrade"): _upgrade,
}
