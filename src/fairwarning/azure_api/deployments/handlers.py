"""Deployments of templates.

What is wrong with a template is told when the client looks how its deployment goes, because
`az` cannot print a refusal of the request itself.
"""

import re

from fairwarning.azure_api.deployments.execute import deploy, planned, refuse_running
from fairwarning.azure_api.deployments.records import (
    TYPE,
    Step,
    as_deployment_failure,
    deployment_in,
    deployment_json,
    state_word,
    step_json,
)
from fairwarning.azure_api.errors import ArmError, Failure
from fairwarning.azure_api.lists import conditions, top_of
from fairwarning.azure_api.operations import (
    RETRY_AFTER_S,
    Operation,
    State,
    status_json,
    unknown_operation,
)
from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Arm, ArmCall, Json, Reply, Routes
from fairwarning.azure_api.resource_store import Kept
from fairwarning.azure_api.template_sessions import template_session
from fairwarning.azure_api.templates.errors import shown

_NAME = re.compile(r"[-\w._()]{1,64}")


async def put(arm: Arm, call: ArmCall) -> Reply:
    _refuse_place(call)
    async with template_session(arm, call) as session:
        is_new = await arm.shelf.find(call.path.id) is None
        kept = await deploy(arm, call, session)
    operation = deployment_in(kept).operation
    url = (
        f"{call.base_url}{kept.id}/operationStatuses/{operation.id}?api-version={call.api_version}"
    )
    headers = {"Azure-AsyncOperation": url, "Retry-After": str(RETRY_AFTER_S)}
    shown = deployment_json(kept, await _state(arm, operation), "Accepted")
    return Reply(201 if is_new else 200, shown, headers)


async def show(arm: Arm, call: ArmCall) -> Reply:
    kept = await _kept(arm, call)
    return Reply(200, deployment_json(kept, await _state(arm, deployment_in(kept).operation)))


async def check(arm: Arm, call: ArmCall) -> Reply:
    kept = await arm.shelf.find(_id(call))
    return Reply(404 if kept is None else 204)


async def delete(arm: Arm, call: ArmCall) -> Reply:
    """Forgets the deployment; what it made stays."""
    kept = await arm.shelf.find(_id(call))
    if kept is not None:
        await refuse_running(arm, kept)
        await arm.shelf.drop(kept, by=call.by)
    return Reply(204)


async def list_all(arm: Arm, call: ArmCall) -> Reply:
    wanted = conditions(call, ("provisioningState",)).get("provisioningstate", "").lower()
    found: list[Json] = []
    async for kept in arm.shelf.below(f"{call.path.place}/providers/{TYPE}"):
        state = await _state(arm, deployment_in(kept).operation)
        if wanted in ("", state_word(state).lower()):
            found.append(deployment_json(kept, state))
    found.sort(key=lambda each: str(each["properties"]["timestamp"]), reverse=True)
    top = call.query.get("$top")
    return Reply(200, {"value": found if top is None else found[: top_of(top)]})


async def status(arm: Arm, call: ArmCall) -> Reply:
    operation = await arm.operations.find(call.path.name)
    kept = await arm.shelf.find(call.path.up().id)
    if operation is None and kept is not None and kept.operation == call.path.name.lower():
        operation = deployment_in(kept).operation
    if operation is None:
        raise unknown_operation(call.path)
    state = await _state(arm, operation)
    headers = {} if state.is_over else {"Retry-After": str(RETRY_AFTER_S)}
    return Reply(200, {**status_json(operation, state), "status": state_word(state)}, headers)


async def validate(arm: Arm, call: ArmCall) -> Reply:
    _refuse_place(call)
    async with template_session(arm, call) as session:
        plan = await planned(arm, call, session)
    properties = {
        "mode": "Incremental",
        "provisioningState": "Succeeded",
        "parameters": plan.parameters,
        "validatedResources": [{"id": each.id} for each in plan.resources],
    }
    path = call.path
    return Reply(200, {"id": path.id, "name": path.name, "type": TYPE, "properties": properties})


async def what_if(_: Arm, call: ArmCall) -> Reply:
    """A refusal in the form of a result, because az breaks on any other."""
    failure = Failure(
        code="WhatIfNotSupported",
        message="What-if is not there; check the template with `az deployment group validate`, or "
        "deploy it without --what-if and --confirm-with-what-if.",
    )
    return Reply(200, {"status": "Failed", "error": failure.json()})


async def list_operations(arm: Arm, call: ArmCall) -> Reply:
    return Reply(200, {"value": await _steps(arm, await _kept(arm, call))})


async def show_operation(arm: Arm, call: ArmCall) -> Reply:
    path = call.path
    id = resource_id(path.subscription, path.group, TYPE, path.names[-2])
    kept = await arm.shelf.find(id)
    steps = [] if kept is None else await _steps(arm, kept)
    for each in steps:
        if each["operationId"] == path.name.upper():
            return Reply(200, each)
    raise ArmError(
        404, "DeploymentOperationNotFound", f"There is no operation '{shown(path.name)}' here."
    )


async def _steps(arm: Arm, kept: Kept) -> list[Json]:
    return [
        step_json(kept.id, number, each, await _step_state(arm, each))
        for number, each in enumerate(deployment_in(kept).steps)
    ]


async def _step_state(arm: Arm, step: Step) -> State:
    if step.failure is not None:
        return State(status="Failed", ended_ms=step.at_ms, failure=step.failure)
    return await arm.operations.state_of_id(step.operation)


async def _state(arm: Arm, operation: Operation) -> State:
    """Of a deployment, whose failure has that of a resource in it."""
    state = await arm.operations.state(operation)
    if state.failure is None:
        return state
    failure: Failure = as_deployment_failure(state.failure)
    return State(status=state.status, ended_ms=state.ended_ms, failure=failure)


async def _kept(arm: Arm, call: ArmCall) -> Kept:
    kept = await arm.shelf.find(_id(call))
    if kept is None:
        raise ArmError(
            404, "DeploymentNotFound", f"Deployment '{shown(call.path.name)}' could not be found."
        )
    return kept


def _id(call: ArmCall) -> str:
    """Clients ask for its operations under an older path too."""
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
            f"The deployment name '{shown(call.path.name)}' is not valid. It has 1 to 64 letters, "
            "digits, hyphens, underscores, dots and parentheses.",
        )


_KEY = TYPE.lower()
_OLD_KEY = "microsoft.resources/subscriptions/resourcegroups/deployments"
ROUTES: Routes = {
    ("GET", "microsoft.resources", "deployments"): list_all,
    ("PUT", _KEY, ""): put,
    ("GET", _KEY, ""): show,
    ("HEAD", _KEY, ""): check,
    ("DELETE", _KEY, ""): delete,
    ("POST", _KEY, "validate"): validate,
    ("POST", _KEY, "whatif"): what_if,
    ("GET", f"{_KEY}/operationstatuses", ""): status,
    ("GET", _KEY, "operations"): list_operations,
    ("GET", f"{_KEY}/operations", ""): show_operation,
    ("GET", _OLD_KEY, "operations"): list_operations,
    ("GET", f"{_OLD_KEY}/operations", ""): show_operation,
}
