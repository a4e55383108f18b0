"""Stores and renders deployments. Neither the record nor the JSON contains secrets."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from fairwarning.azure_api.errors import Failure
from fairwarning.azure_api.operations import Operation, OperationState
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.common.durations import format_iso_duration
from fairwarning.core.instants import Instant, format_rfc3339

TYPE = "Microsoft.Resources/deployments"
_STATES = {"InProgress": "Running"}
"""The states of an operation that have another name in a deployment."""


class Step(Struct, frozen=True, kw_only=True):
    """One resource of the template that the deployment created or failed to create."""

    id: str
    """The id of the resource."""
    type: str
    name: str
    at_ms: Instant
    status: int
    operation: str = ""
    """The id of the resource's own operation.

    It is empty if there was no long-running operation.
    """
    failure: Failure | None = None
    verb: str = "Create"
    """`Create`, or `Delete` for a resource that mode Complete has deleted."""


class Deployment(Struct, frozen=True, kw_only=True):
    """The body of a deployment's record."""

    correlation_id: str
    template_hash: str
    operation: Operation
    """The deployment's operation, with the events of all its resources.

    It is stored here too, because the store of operations deletes each of them after a day.
    """
    tags: Json
    parameters: Json
    outputs: Json
    steps: tuple[Step, ...]
    needs: Mapping[str, Sequence[str]]
    """Maps the id of each resource to the ids of the resources that it depends on."""
    mode: str = "Incremental"
    left_over: tuple[str, ...] = ()
    """The ids of resources to delete once the deployment's events are over."""


def read_deployment(record: ResourceRecord) -> Deployment:
    return msgspec.convert(record.body, Deployment)


def deployment_body(deployment: Deployment) -> Json:
    body = msgspec.to_builtins(deployment)
    assert isinstance(body, dict)
    return body


def deployment_json(record: ResourceRecord, state: OperationState, word: str = "") -> Json:
    """Renders a deployment. If `word` is given, it replaces the real provisioningState."""
    found = read_deployment(record)
    properties: Json = {
        "templateHash": found.template_hash,
        "mode": found.mode,
        "provisioningState": word or state_word(state),
        "timestamp": format_rfc3339(_last_ms(found, state)),
        "duration": _duration(found, state),
        "correlationId": found.correlation_id,
        "parameters": found.parameters,
        "providers": _providers(found.steps),
        "dependencies": _dependencies(found),
    }
    if state.is_over and not word:
        created = [each for each in found.steps if each.failure is None and each.verb == "Create"]
        properties["outputs"] = found.outputs
        properties["outputResources"] = [{"id": each.id} for each in created]
    if state.failure is not None and not word:
        properties["error"] = state.failure.json()
    tags: Json = {"tags": found.tags} if found.tags else {}
    return {"id": record.id, "name": record.name, "type": TYPE, **tags, "properties": properties}


def state_word(state: OperationState) -> str:
    return _STATES.get(state.status, state.status)


def as_deployment_failure(failure: Failure) -> Failure:
    """Returns a DeploymentFailed that has this failure as a detail. Clients print the details."""
    if failure.code == "DeploymentFailed":
        return failure
    return Failure(
        code="DeploymentFailed",
        message="At least one resource deployment operation failed. Please list deployment "
        "operations for details.",
        details=failure.details or (failure,),
    )


def step_json(deployment_id: str, number: int, step: Step, state: OperationState) -> Json:
    """Renders a step as one of the deployment's operations."""
    name = f"{number + 1:016X}"
    properties: Json = {
        "provisioningOperation": step.verb,
        "provisioningState": state_word(state),
        "timestamp": format_rfc3339(step.at_ms),
        "duration": _span(step.at_ms, state.ended_ms),
        "statusCode": {200: "OK", 201: "Created", 202: "Accepted"}.get(step.status, "BadRequest"),
        "targetResource": {"id": step.id, "resourceType": step.type, "resourceName": step.name},
    }
    if state.failure is not None:
        properties["statusMessage"] = {"status": "Failed", "error": state.failure.json()}
    id = f"{deployment_id}/operations/{name}"
    return {"id": id, "operationId": name, "properties": properties}


def _last_ms(found: Deployment, state: OperationState) -> Instant:
    return found.operation.started_ms if state.ended_ms is None else state.ended_ms


def _duration(found: Deployment, state: OperationState) -> str:
    began = min([each.at_ms for each in found.steps], default=found.operation.started_ms)
    return _span(began, state.ended_ms)


def _span(began: Instant, ended: Instant | None) -> str:
    return format_iso_duration(0 if ended is None else max(0, ended - began))


def _providers(steps: Sequence[Step]) -> list[Json]:
    types: dict[str, dict[str, Json]] = {}
    for each in steps:
        namespace, _, type = each.type.partition("/")
        one = {"resourceType": type, "locations": [None]}
        types.setdefault(namespace, {})[type.lower()] = one
    return [
        {"namespace": namespace, "resourceTypes": list(found.values())}
        for namespace, found in types.items()
    ]


def _dependencies(found: Deployment) -> list[Json]:
    by_id = {each.id: each for each in found.steps}
    return [
        {"dependsOn": [_named(by_id[other]) for other in others], **_named(by_id[id])}
        for id, others in found.needs.items()
        if others and id in by_id
    ]


def _named(step: Step) -> Json:
    return {"id": step.id, "resourceType": step.type, "resourceName": step.name}
