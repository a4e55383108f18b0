"""What is kept of a deployment, and what it looks like. Secrets are in neither."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from fairwarning.azure_api.errors import Failure
from fairwarning.azure_api.operations import Operation, State
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.resource_store import Kept
from fairwarning.common.durations import format_iso_duration
from fairwarning.core.instants import Instant, format_rfc3339

TYPE = "Microsoft.Resources/deployments"
_STATES = {"InProgress": "Running"}
"""What deployments call the states of operations."""


class Step(Struct, frozen=True, kw_only=True):
    """One resource that was made, or could not be."""

    id: str
    """Of the resource."""
    type: str
    name: str
    at_ms: Instant
    status: int
    operation: str = ""
    """The resource's own, if it takes time."""
    failure: Failure | None = None


class Deployment(Struct, frozen=True, kw_only=True):
    """The body of what is kept."""

    correlation_id: str
    template_hash: str
    operation: Operation
    """With the events of all resources. Kept here too: a deployment is not forgotten."""
    tags: Json
    parameters: Json
    outputs: Json
    steps: tuple[Step, ...]
    needs: Mapping[str, Sequence[str]]
    """Ids of resources, by that of the one that had to come after them."""


def deployment_in(kept: Kept) -> Deployment:
    return msgspec.convert(kept.body, Deployment)


def body_of(deployment: Deployment) -> Json:
    body = msgspec.to_builtins(deployment)
    assert isinstance(body, dict)
    return body


def deployment_json(kept: Kept, state: State, word: str = "") -> Json:
    """`word` is its provisioningState if not the real one."""
    found = deployment_in(kept)
    properties: Json = {
        "templateHash": found.template_hash,
        "mode": "Incremental",
        "provisioningState": word or state_word(state),
        "timestamp": format_rfc3339(_last_ms(found, state)),
        "duration": _duration(found, state),
        "correlationId": found.correlation_id,
        "parameters": found.parameters,
        "providers": _providers(found.steps),
        "dependencies": _dependencies(found),
    }
    if state.is_over and not word:
        made = [each for each in found.steps if each.failure is None]
        properties["outputs"] = found.outputs
        properties["outputResources"] = [{"id": each.id} for each in made]
    if state.failure is not None and not word:
        properties["error"] = state.failure.json()
    tags: Json = {"tags": found.tags} if found.tags else {}
    return {"id": kept.id, "name": kept.name, "type": TYPE, **tags, "properties": properties}


def state_word(state: State) -> str:
    return _STATES.get(state.status, state.status)


def as_deployment_failure(failure: Failure) -> Failure:
    """Whatever went wrong is a detail of it: clients print the details."""
    if failure.code == "DeploymentFailed":
        return failure
    return Failure(
        code="DeploymentFailed",
        message="At least one resource deployment operation failed. Please list deployment "
        "operations for details.",
        details=failure.details or (failure,),
    )


def step_json(deployment_id: str, number: int, step: Step, state: State) -> Json:
    """One of the deployment's operations."""
    name = f"{number + 1:016X}"
    properties: Json = {
        "provisioningOperation": "Create",
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


def _last_ms(found: Deployment, state: State) -> Instant:
    return found.operation.started_ms if state.ended_ms is None else state.ended_ms


def _duration(found: Deployment, state: State) -> str:
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
