"""These handlers create, get, list, validate and delete deployments of templates.

A mistake in a template is reported when the client asks for the deployment's state, because `az`
cannot print a refusal of the request itself.
"""

import re

from fairwarning.azure_api.deployments.execute import (
    deploy,
    finish,
    plan_deployment,
    refuse_running,
)
from fairwarning.azure_api.deployments.records import (
    TYPE,
    Step,
    as_deployment_failure,
    deployment_json,
    read_deployment,
    state_word,
    step_json,
)
from fairwarning.azure_api.deployments.template_runner import template_runner
from fairwarning.azure_api.deployments.what_if import Preview, ids_only
from fairwarning.azure_api.errors import ArmError, Failure
from fairwarning.azure_api.etags import record_tag, refuse_unmatched_record, retried, tag_header
from fairwarning.azure_api.instance_changes import locked_in_turn
from fairwarning.azure_api.lists import read_filter, top_of
from fairwarning.azure_api.operations import (
    RETRY_AFTER_S,
    Operation,
    OperationState,
    status_json,
    unknown_operation,
)
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.templates.errors import shorten

_NAME = re.compile(r"[-\w._()]{1,64}")


async def create_or_update(arm: Arm, call: ArmCall) -> Reply:
    """Deploys the template. If the request has a condition, it locks the name of the deployment.

    Without a condition, several templates of one name may be deployed at once, and the last of them
    is refused.
    """
    _refuse_place(call)
    if not call.if_match and not call.if_none_match:
        return await _deploy(arm, call)
    async with locked_in_turn(arm, call, f"arm{call.path.id.lower()}"):
        refuse_unmatched_record(call, await arm.resources.find(call.path.id))
        return await _deploy(arm, call.without_conditions())


async def _deploy(arm: Arm, call: ArmCall) -> Reply:
    async with template_runner(arm, call) as runner:
        is_new = await arm.resources.find(call.path.id) is None
        record = await deploy(arm, call, runner)
    operation = read_deployment(record).operation
    place = f"{call.base_url}{record.id}/operationStatuses"
    url = f"{place}/{operation.id}?api-version={call.api_version}"
    headers = {
        "Azure-AsyncOperation": url,
        "Retry-After": str(RETRY_AFTER_S),
        **tag_header(record_tag(record)),
    }
    body = deployment_json(record, await _state(arm, operation), "Accepted")
    return Reply(201 if is_new else 200, body, headers)


async def get(arm: Arm, call: ArmCall) -> Reply:
    record = await finish(arm, call.without_conditions(), await _get_record(arm, call))
    body = deployment_json(record, await _state(arm, read_deployment(record).operation))
    return Reply(200, body, tag_header(record_tag(record)))


async def exists(arm: Arm, call: ArmCall) -> Reply:
    record = await arm.resources.find(_id(call))
    return Reply(404 if record is None else 204)


async def delete(arm: Arm, call: ArmCall) -> Reply:
    """Deletes the record of the deployment. The resources that the deployment created stay."""
    record = await arm.resources.find(_id(call))
    refuse_unmatched_record(call, record)
    if record is not None:
        await refuse_running(arm, record)
        await arm.resources.delete(record, by=call.by)
    return Reply(204)


async def list_deployments(arm: Arm, call: ArmCall) -> Reply:
    wanted = read_filter(call, ("provisioningState",)).get("provisioningstate", "").lower()
    found: list[Json] = []
    async for record in arm.resources.list_below(f"{call.path.place}/providers/{TYPE}"):
        state = await _state(arm, read_deployment(record).operation)
        if wanted in ("", state_word(state).lower()):
            found.append(deployment_json(record, state))
    found.sort(key=lambda each: str(each["properties"]["timestamp"]), reverse=True)
    top = call.query.get("$top")
    return Reply(200, {"value": found if top is None else found[: top_of(top)]})


async def get_status(arm: Arm, call: ArmCall) -> Reply:
    operation = await arm.operations.find(call.path.name)
    record = await arm.resources.find(call.path.up().id)
    if record is not None and record.operation == call.path.name.lower():
        # The record knows the operation for longer, and also its late failures.
        operation = read_deployment(await finish(arm, call.without_conditions(), record)).operation
    if operation is None:
        raise unknown_operation(call.path)
    state = await _state(arm, operation)
    headers = {} if state.is_over else {"Retry-After": str(RETRY_AFTER_S)}
    return Reply(200, {**status_json(operation, state), "status": state_word(state)}, headers)


async def validate(arm: Arm, call: ArmCall) -> Reply:
    _refuse_place(call)
    async with template_runner(arm, call) as runner:
        plan = await plan_deployment(arm, call, runner)
    properties = {
        "mode": plan.mode,
        "provisioningState": "Succeeded",
        "parameters": plan.parameters,
        "validatedResources": [{"id": each.id} for each in plan.resources],
    }
    path = call.path
    return Reply(200, {"id": path.id, "name": path.name, "type": TYPE, "properties": properties})


async def what_if(arm: Arm, call: ArmCall) -> Reply:
    """Replies with what the deployment would change.

    A failure also has the status 200, with a failed result: az cannot show any other refusal.
    """
    try:
        _refuse_place(call)
        async with template_runner(arm, call) as runner:
            changes = await Preview(arm, call, runner).changes()
            is_short = await runner.result_format() == "resourceidonly"
    except ArmError as error:
        return Reply(200, {"status": "Failed", "error": error.failure.json()})
    shown = ids_only(changes) if is_short else changes
    return Reply(200, {"status": "Succeeded", "properties": {"changes": shown}})


async def list_operations(arm: Arm, call: ArmCall) -> Reply:
    return Reply(200, {"value": await _list_steps(arm, await _get_record(arm, call))})


async def get_operation(arm: Arm, call: ArmCall) -> Reply:
    path = call.path
    id = resource_id(path.subscription, path.group, TYPE, path.names[-2])
    record = await arm.resources.find(id)
    steps = [] if record is None else await _list_steps(arm, record)
    for each in steps:
        if each["operationId"] == path.name.upper():
            return Reply(200, each)
    raise ArmError(
        404, "DeploymentOperationNotFound", f"There is no operation '{shorten(path.name)}' here."
    )


async def _list_steps(arm: Arm, record: ResourceRecord) -> list[Json]:
    return [
        step_json(record.id, number, each, await _step_state(arm, each))
        for number, each in enumerate(read_deployment(record).steps)
    ]


async def _step_state(arm: Arm, step: Step) -> OperationState:
    if step.failure is not None:
        return OperationState(status="Failed", ended_ms=step.at_ms, failure=step.failure)
    return await arm.operations.state_of_id(step.operation)


async def _state(arm: Arm, operation: Operation) -> OperationState:
    """Returns the state of a deployment. Its failure has the resource's failure as a detail."""
    state = await arm.operations.state(operation)
    if state.failure is None:
        return state
    failure: Failure = as_deployment_failure(state.failure)
    return OperationState(status=state.status, ended_ms=state.ended_ms, failure=failure)


async def _get_record(arm: Arm, call: ArmCall) -> ResourceRecord:
    record = await arm.resources.find(_id(call))
    if record is None:
        raise ArmError(
            404, "DeploymentNotFound", f"Deployment '{shorten(call.path.name)}' could not be found."
        )
    return record


def _id(call: ArmCall) -> str:
    """Returns the deployment's id.

    It is not `call.path.id`, because clients also use an older path for a deployment's operations.
    """
    return resource_id(call.path.subscription, call.path.group, TYPE, call.path.name)


def _refuse_place(call: ArmCall) -> None:
    if not call.path.group:
        raise ArmError(
            400,
            "InvalidDeploymentScope",
            "Templates are deployed to resource groups here; use `az deployment group create`.",
        )
    if not _NAME.fullmatch(call.path.name):
        raise ArmError(
            400,
            "InvalidDeploymentName",
            f"The deployment name '{shorten(call.path.name)}' is not valid. It has 1 to 64 "
            "letters, digits, hyphens, underscores, dots and parentheses.",
        )


_KEY = TYPE.lower()
_OLD_KEY = "microsoft.resources/subscriptions/resourcegroups/deployments"
ROUTES: Routes = {
    ("GET", "microsoft.resources", "deployments"): list_deployments,
    ("PUT", _KEY, ""): create_or_update,
    ("GET", _KEY, ""): get,
    ("HEAD", _KEY, ""): exists,
    ("DELETE", _KEY, ""): retried(delete),
    ("POST", _KEY, "validate"): validate,
    ("POST", _KEY, "whatif"): what_if,
    ("GET", f"{_KEY}/operationstatuses", ""): get_status,
    ("GET", _KEY, "operations"): list_operations,
    ("GET", f"{_KEY}/operations", ""): get_operation,
    ("GET", _OLD_KEY, "operations"): list_operations,
    ("GET", f"{_OLD_KEY}/operations", ""): get_operation,
}
