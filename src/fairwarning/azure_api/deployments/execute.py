"""Executes a deployment: it sends one internal request for each resource of the template.

If the template or a resource is not valid, the error is stored as the deployment's failure. The
resources that were created before the error stay, as in Azure's incremental mode.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from fairwarning.azure_api.app import refuse_version
from fairwarning.azure_api.deployments.complete_mode import delete_resources, resources_left_out
from fairwarning.azure_api.deployments.records import (
    TYPE,
    Deployment,
    Step,
    as_deployment_failure,
    deployment_body,
    read_deployment,
)
from fairwarning.azure_api.deployments.template_runner import TemplateRunner
from fairwarning.azure_api.errors import ArmError, Failure, as_arm_error
from fairwarning.azure_api.group_state import get_group, refuse_deleting
from fairwarning.azure_api.operations import Operation, new_operation_id
from fairwarning.azure_api.paths import BadPath, ResourcePath, resource_path
from fairwarning.azure_api.request import Arm, ArmCall, Json
from fairwarning.azure_api.resource_store import ResourceRecord
from fairwarning.azure_api.templates.errors import invalid, shorten
from fairwarning.azure_api.templates.resolve import WantedResource
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS, DeploymentContext
from fairwarning.azure_api.templates.template_job import ROOT, DeploymentPlan, Evaluated, Resource
from fairwarning.core.model import EventId
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import RecordChanged
from fairwarning.operator_api.problems import Problem

LEVELS_MAX = 5
"""The maximum number of levels of nested deployments."""
_VERSION = "2024-11-01"
_RETRY_STATUSES = (429, 503)
"""Clients retry after these statuses, so they are no failure while nothing has been created."""


@dataclass(slots=True)
class Outcome:
    """What a deployment has done so far."""

    steps: list[Step] = field(default_factory=list)
    events: list[EventId] = field(default_factory=list)
    outputs: Json = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Json = field(default_factory=dict)
    template_hash: str = ""
    failure: Failure | None = None
    mode: str = "Incremental"
    left_over: tuple[str, ...] = ()


async def deploy(
    arm: Arm, call: ArmCall, runner: TemplateRunner, deployment: int = ROOT, *, level: int = 1
) -> ResourceRecord:
    """Executes the deployment, stores its outcome and returns the stored record.

    Raises ArmError if a deployment of this name is still running. Raises Problem (status 429 or
    503) if the server cannot start it now. Other errors are stored in the outcome.
    """
    before = await arm.resources.find(call.path.id)
    if before is not None:
        await refuse_running(arm, before)
    outcome = Outcome()
    outcome.tags, outcome.template_hash = await runner.summary(deployment)
    try:
        plan = await plan_deployment(arm, call, runner, deployment, level)
        outcome.parameters, outcome.needs, outcome.mode = plan.parameters, plan.needs, plan.mode
        await _Executor(arm, call, runner, deployment, plan, outcome, level).run()
    except Problem as problem:
        if _is_retried(problem) and not outcome.steps:
            raise
        outcome.failure = as_deployment_failure(as_arm_error(problem).failure)
    except (ArmError, Refused) as error:
        outcome.failure = as_deployment_failure(as_arm_error(error).failure)
    return await _store(arm, call, before, outcome)


def _is_retried(error: Exception) -> bool:
    return isinstance(error, Problem) and error.status in _RETRY_STATUSES


async def refuse_running(arm: Arm, record: ResourceRecord) -> None:
    if not (await arm.operations.state(read_deployment(record).operation)).is_over:
        raise _active(record.name)


def _active(name: str) -> ArmError:
    return ArmError(
        409,
        "DeploymentActive",
        f"Unable to edit or replace deployment '{name}': previous deployment is still active. "
        "Wait until it is over, or choose another name.",
    )


async def plan_deployment(
    arm: Arm, call: ArmCall, runner: TemplateRunner, deployment: int = ROOT, level: int = 1
) -> DeploymentPlan:
    """Returns the plan of the deployment and creates nothing. Raises ArmError or Problem."""
    if level > LEVELS_MAX:
        raise invalid(f"Deployments are nested more than {LEVELS_MAX} levels deep")
    return await runner.plan(deployment, await _context(arm, call))


async def _context(arm: Arm, call: ArmCall) -> DeploymentContext:
    path = call.path
    return DeploymentContext(
        subscription=await _read(arm, call, f"/subscriptions/{path.subscription}", _VERSION),
        group=await _read(arm, call, path.place, _VERSION),
        deployment={
            "name": path.name,
            "properties": {"mode": "Incremental", "provisioningState": "Accepted"},
        },
        now=arm.control.clock.now(),
        seed=new_operation_id(),
    )


async def _read(arm: Arm, call: ArmCall, id: str, api_version: str) -> Json:
    path = _path(id)
    query = {"api-version": api_version}
    reply = await arm.answer(replace(call, method="GET", path=path, query=query, body=None))
    found = msgspec.to_builtins(reply.body)
    return found if isinstance(found, dict) else {}


def _path(id: str) -> ResourcePath:
    try:
        path = resource_path(id)
    except BadPath as problem:
        raise invalid(f"The id '{shorten(id)}' is not valid: {problem}") from None
    if path.tail:
        raise invalid(f"The id '{shorten(id)}' names no resource")
    return path


@dataclass(frozen=True, slots=True)
class _Executor:
    arm: Arm
    call: ArmCall
    runner: TemplateRunner
    deployment: int
    plan: DeploymentPlan
    outcome: Outcome
    level: int

    async def run(self) -> None:
        """Creates the resources in order, then evaluates the outputs.

        Stops at the first failure and raises it as ArmError, Refused or Problem.
        """
        runner, deployment = self.runner, self.deployment
        for number, each in enumerate(self.plan.resources):
            await self._step(number, each)
        found = await self._evaluate(lambda: runner.outputs(deployment))
        self.outcome.outputs = found.value
        if self.plan.mode == "Complete":
            await self._delete_others()

    async def _delete_others(self) -> None:
        """Deletes the resources of the group that neither this nor a nested template has."""
        arm, path = self.arm, self.call.path
        kept = {each.lower() for each in await _ids_of(arm, self.outcome.steps)}
        rows = await resources_left_out(arm, path.subscription, path.group, kept)
        ids = [each.id for each in rows if each.is_deletable]
        done, refused = await delete_resources(arm, self.call, ids)
        now = arm.control.clock.now()
        for id, operation in done:
            other = _path(id)
            step = Step(
                id=id, type=other.type, name=other.name, at_ms=now, status=200, verb="Delete",
                operation="" if operation is None else operation.id,
            )  # fmt: skip
            self.outcome.steps.append(step)
            self.outcome.events += () if operation is None else operation.events
        self.outcome.left_over = tuple(refused)

    async def _step(self, number: int, each: Resource) -> None:
        began = self.arm.control.clock.now()
        step = Step(id=each.id, type=each.type, name=each.name, at_ms=began, status=200)
        try:
            status, operation = await self._create(number, each)
        except (ArmError, Refused, Problem) as error:
            if _is_retried(error) and not self.outcome.steps:
                raise
            found = as_arm_error(error)
            step = msgspec.structs.replace(step, status=found.status, failure=found.failure)
            self.outcome.steps.append(step)
            raise ArmError(
                found.status, found.failure.code, found.failure.message,
                details=found.failure.details, target=each.id,
            ) from None  # fmt: skip
        id = "" if operation is None else operation.id
        self.outcome.steps.append(msgspec.structs.replace(step, status=status, operation=id))
        self.outcome.events += () if operation is None else operation.events

    async def _create(self, number: int, each: Resource) -> tuple[int, Operation | None]:
        refuse_version(each.api_version)
        runner, deployment = self.runner, self.deployment
        found = await self._evaluate(lambda: runner.body(deployment, number))
        path = _path(each.id)
        query = {"api-version": each.api_version}
        call = replace(
            self.call, method="PUT", path=path, query=query, body=found.value, template=b""
        )
        if each.is_deployment:
            return 201, await self._deploy_nested(call, found.nested)
        reply = await self.arm.answer(call)
        if reply.operation is not None:
            await self._refuse_failed(reply.operation)
        return reply.status, reply.operation

    async def _deploy_nested(self, call: ArmCall, deployment: int) -> Operation:
        path = call.path
        group = await get_group(self.arm, path.subscription, path.group)
        refuse_deleting(group)
        call = replace(call, path=replace(path, group=group.name))
        record = await deploy(self.arm, call, self.runner, deployment, level=self.level + 1)
        operation = read_deployment(record).operation
        await self._refuse_failed(operation)
        return operation

    async def _refuse_failed(self, operation: Operation) -> None:
        failure = (await self.arm.operations.state(operation)).failure
        if failure is not None:
            raise ArmError(409, failure.code, failure.message, details=failure.details)

    async def _evaluate(self, ask: Callable[[], Awaitable[Evaluated]]) -> Evaluated:
        return await evaluate(self.arm, self.call, self.runner, ask)


async def evaluate(
    arm: Arm, call: ArmCall, runner: TemplateRunner, ask: Callable[[], Awaitable[Evaluated]]
) -> Evaluated:
    """Calls `ask` and reads the resources that it wants, until it wants no more.

    Each round reads other resources than the rounds before, so the loop ends.
    """
    while (found := await ask()).wanted:
        for each in found.wanted:
            await runner.add_resource(each.id, await _read_reference(arm, call, each))
    return found


async def _read_reference(arm: Arm, call: ArmCall, wanted: WantedResource) -> Json:
    version = wanted.api_version or API_VERSIONS.get(_path(wanted.id).namespace, _VERSION)
    refuse_version(version)
    return await _read(arm, call, wanted.id, version)


async def _ids_of(arm: Arm, steps: Sequence[Step]) -> list[str]:
    """Returns the ids of the resources that the steps created, also in nested deployments."""
    found: list[str] = []
    for each in steps:
        found.append(each.id)
        record = await arm.resources.find(each.id) if each.type.lower() == TYPE.lower() else None
        if record is not None:
            found += await _ids_of(arm, read_deployment(record).steps)
    return found


async def finish(arm: Arm, call: ArmCall, record: ResourceRecord) -> ResourceRecord:
    """Deletes what a deployment in mode Complete could not delete before its events were over.

    What still can't be deleted then makes the deployment fail.
    """
    deployment = read_deployment(record)
    state = await arm.operations.state(deployment.operation)
    if not deployment.left_over or not state.is_over:
        return record
    _, refused = await delete_resources(arm, call, deployment.left_over)
    operation = deployment.operation
    if refused and operation.failure is None:
        first = next(iter(refused.values())).failure
        failure = as_deployment_failure(first)
        operation = msgspec.structs.replace(operation, failure=failure)
    body = deployment_body(msgspec.structs.replace(deployment, operation=operation, left_over=()))
    try:
        return await arm.resources.put(msgspec.structs.replace(record, body=body), by=call.by)
    except RecordChanged:
        return record  # Another request has finished it.


async def _store(
    arm: Arm, call: ArmCall, before: ResourceRecord | None, outcome: Outcome
) -> ResourceRecord:
    path = call.path
    operation = await arm.operations.begin(
        call, verb="deploy", target=path.id, events=outcome.events, failure=outcome.failure
    )
    deployment = Deployment(
        correlation_id=new_operation_id(),
        template_hash=outcome.template_hash,
        operation=operation,
        tags=outcome.tags,
        parameters=outcome.parameters,
        outputs=outcome.outputs,
        steps=tuple(outcome.steps),
        needs=_needs_of_created(outcome),
        mode=outcome.mode,
        left_over=outcome.left_over,
    )
    record = ResourceRecord(
        id=path.id,
        type=TYPE,
        name=path.name,
        body=deployment_body(deployment),
        created_ms=operation.started_ms if before is None else before.created_ms,
        unique_id=deployment.correlation_id,
        operation=operation.id,
        revision=0 if before is None else before.revision,
        stored="" if before is None else before.stored,
    )
    try:
        return await arm.resources.put(record, by=call.by)
    except RecordChanged:
        raise _active(path.name) from None


def _needs_of_created(outcome: Outcome) -> dict[str, list[str]]:
    created = {each.id for each in outcome.steps}
    return {
        id: [other for other in others if other in created]
        for id, others in outcome.needs.items()
        if id in created and others
    }
