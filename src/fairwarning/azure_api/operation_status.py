"""This handler returns the state of a long-running operation. Clients poll it."""

from fairwarning.azure_api.group_state import find_group
from fairwarning.azure_api.operations import (
    RETRY_AFTER_S,
    Operation,
    status_json,
    unknown_operation,
)
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Reply, Routes


async def get(arm: Arm, call: ArmCall) -> Reply:
    operation = await arm.operations.find(call.path.name)
    if operation is None:
        raise unknown_operation(call.path)
    state = await arm.operations.state(operation)
    if state.is_over and operation.verb == "delete":
        await _clear_away(arm, operation)
    if "monitor" not in call.query:
        headers = {} if state.is_over else {"Retry-After": str(RETRY_AFTER_S)}
        return Reply(200, status_json(operation, state), headers)
    if not state.is_over:
        url = f"{call.base_url}{call.path.id}?api-version={call.api_version}&monitor=true"
        return Reply(202, None, {"Location": url, "Retry-After": str(RETRY_AFTER_S)})
    return Reply(200)


async def _clear_away(arm: Arm, operation: Operation) -> None:
    """Deletes the records of a group whose deletion is over. The lookup of the group does this."""
    path = resource_path(operation.target)
    if path.key.endswith("/resourcegroups"):
        await find_group(arm, path.subscription, path.group)


ROUTES: Routes = {("GET", "microsoft.compute/locations/operations", ""): get}
