"""Answers that show a VM."""

from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply
from fairwarning.control.arm.errors import ArmError, not_found
from fairwarning.control.arm.kept_machines import TYPE, Standing, standing
from fairwarning.control.arm.machine_json import machine_json
from fairwarning.control.arm.operations import Operation, lro_headers
from fairwarning.control.arm.paths import ResourcePath
from fairwarning.control.arm.profiles import without_too_new


def shown(arm: Arm, call: ArmCall, found: Standing, *, with_view: bool = False) -> Json:
    """As the api-version of the call knows it."""
    now = arm.control.clock.now()
    body = machine_json(found.machine, found.kept, now, with_view=with_view)
    return {**body, "properties": without_too_new(call, body["properties"])}


async def written(arm: Arm, call: ArmCall, status: int, operation: Operation) -> Reply:
    """The answer to a PUT or PATCH: the VM as it is now, and where to ask how far it is."""
    found = await existing(arm, call.path)
    headers = lro_headers(call, operation, found.machine.scope.roster.location)
    return Reply(status, shown(arm, call, found), headers)


async def existing(arm: Arm, path: ResourcePath) -> Standing:
    found = await standing(arm, path)
    if found is None:
        raise not_found(TYPE, path.name, path.group)
    return found


def refuse_going(call: ArmCall, found: Standing) -> None:
    if found.is_going:
        raise ArmError(
            409,
            "OperationNotAllowed",
            f"Operation '{call.path.tail or call.method}' is not allowed on VM "
            f"'{found.machine.instance.name}' since the VM is marked for deletion. You can only "
            "retry the Delete operation (or wait for an ongoing one to complete).",
        )
