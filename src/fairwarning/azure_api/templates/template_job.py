"""Does the expensive work of a deployment: it parses, plans and evaluates the template. Pure.

A template may need a second and a hundred megabytes, so a job outside of the event loop works on
it. The job keeps the body and the plans. It returns one resource at a time, and the size of a
resource is limited. The job of a small template runs in a thread. Other jobs run in a process of
their own (`serve_template_job`). `deployments/template_runner.py` decides this. The same questions
in the same order get the same answers, so a new job can replace a job that died.
"""

import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fairwarning.azure_api.body_values import tags_of
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.lenient_json import read_json
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import invalid, shorten
from fairwarning.azure_api.templates.limits import WORK_MAX, Budget
from fairwarning.azure_api.templates.plan import Plan
from fairwarning.azure_api.templates.resolve import WantedResource
from fairwarning.azure_api.templates.resource_copies import PlannedResource
from fairwarning.azure_api.templates.scope_functions import DeploymentContext

KEPT_BYTES_MAX = 512 * 1024
"""The maximum size of a deployment's parameters, of its outputs and of a resource's body."""
KEPT_VALUES_MAX = 20_000
NEEDS_MAX = 5_000
"""The maximum number of dependencies between resources that a deployment shows."""
MODES = {each.lower(): each for each in ("Incremental", "Complete")}
ROOT = 0
"""The number of the outermost deployment. Nested deployments have other numbers."""


class Resource(NamedTuple):
    id: str
    type: str
    name: str
    api_version: str
    is_deployment: bool


class DeploymentPlan(NamedTuple):
    mode: str
    """`Incremental` or `Complete`."""
    parameters: Json
    needs: Mapping[str, Sequence[str]]
    resources: Sequence[Resource]


class Evaluated(NamedTuple):
    value: Json
    wanted: Sequence[WantedResource] = ()
    """The resources that the caller must read and add first. Until then there is no value."""
    nested: int = 0
    """The number of the nested deployment, if the resource is one. Its body stays in the job."""


class TemplateJob:
    """Works on the templates of a deployment and of its nested deployments. Raises ArmError."""

    def __init__(self, work_max: int) -> None:
        self.budget = Budget(work_max)
        self._bodies: list[Json] = []
        self._plans: dict[int, Plan] = {}
        self._resources: dict[str, Json] = {}
        """The existing resources that the current evaluation can use, by id in lower case."""

    def read(self, raw: bytes) -> None:
        """Parses the body of the whole deployment."""
        self._bodies = [_deployment_body(read_json(raw))]

    def summary(self, deployment: int) -> tuple[Json, str]:
        """Returns the tags of a deployment, and the hash of its template."""
        body = self._bodies[deployment]
        try:
            tags: Json = dict(tags_of(body))
        except ArmError:
            tags = {}  # `plan` raises the error.
        template = msgspec.json.encode(body["properties"].get("template"), order="sorted")
        return tags, str(int.from_bytes(hashlib.sha256(template).digest()[:8]))

    def result_format(self) -> str:
        settings = self._bodies[ROOT]["properties"].get("whatIfSettings")
        found = settings.get("resultFormat") if isinstance(settings, dict) else None
        return found.lower() if isinstance(found, str) else ""

    def plan(self, deployment: int, context: DeploymentContext) -> DeploymentPlan:
        tags_of(self._bodies[deployment])
        properties = self._bodies[deployment]["properties"]
        mode = _mode(properties.get("mode"), is_nested=deployment != ROOT)
        for link in ("templateLink", "parametersLink"):
            if properties.get(link):
                raise ArmError(
                    400,
                    "InvalidTemplate",
                    f"A {link} is not followed here; send the content itself.",
                )
        template = properties.get("template")
        if not isinstance(template, dict):
            raise invalid("The template must be an object")
        plan = Plan(template, properties.get("parameters"), context, self.budget)
        self._plans[deployment] = plan
        parameters = plan.parameters
        _refuse_large("The parameters of a deployment", parameters)
        return DeploymentPlan(
            mode=mode,
            parameters=parameters,
            needs=_first(plan.needs, NEEDS_MAX),
            resources=[_resource(each) for each in plan.resources],
        )

    def body(self, deployment: int, number: int) -> Evaluated:
        plan = self._plans[deployment]
        planned = plan.resources[number]
        value, wanted = plan.body(planned, self._resources)
        if wanted:
            return Evaluated({}, wanted)
        self._resources = {}
        if planned.is_deployment:
            self._bodies.append(_deployment_body(value))
            return Evaluated({}, nested=len(self._bodies) - 1)
        _refuse_large(f"The resource '{shorten(planned.name)}'", value)
        return Evaluated(value)

    def outputs(self, deployment: int) -> Evaluated:
        value, wanted = self._plans[deployment].outputs(self._resources)
        if wanted:
            return Evaluated({}, wanted)
        self._resources = {}
        _refuse_large("The outputs of a deployment", value)
        return Evaluated(value)

    def add_resource(self, id: str, found: Json) -> None:
        """Adds an existing resource that the current evaluation wants."""
        self._resources[id.lower()] = found


def serve_template_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """Runs a job in its own process. It answers each frame (a question) with one frame."""
    worker = TemplateJob(WORK_MAX)
    for frame in given:
        name, arguments = pickle.loads(frame)  # noqa: S301  Only we ourselves write these.
        try:
            answer: tuple[object, object] = (None, getattr(worker, name)(*arguments))
        except ArmError as error:
            answer = ((error.status, error.failure, error.headers), None)
        yield pickle.dumps(answer)


def question(name: str, arguments: Sequence[object]) -> bytes:
    return pickle.dumps((name, arguments))


def read_answer(frame: bytes) -> Any:
    """Returns the value that the job answered. Raises the ArmError that the job raised."""
    error, value = pickle.loads(frame)  # noqa: S301  Only we ourselves write these.
    if error is None:
        return value
    status, failure, headers = error
    raise ArmError(
        status, failure.code, failure.message,
        details=failure.details, target=failure.target, headers=headers,
    )  # fmt: skip


def _deployment_body(body: Json | None) -> Json:
    """Returns the body of a deployment. Raises ArmError if it has no template."""
    properties = body.get("properties") if body is not None else None
    if body is None or not isinstance(properties, dict):
        why = "a deployment has 'properties' with a 'template'"
    elif not properties.get("template") and not properties.get("templateLink"):
        why = "the 'properties' of a deployment have a 'template'"
    else:
        return body
    raise ArmError(400, "InvalidRequestContent", f"The request content was invalid: {why}.")


def _mode(mode: object, *, is_nested: bool) -> str:
    """Returns the mode of a deployment. Raises ArmError if there is no such mode.

    A nested deployment deletes nothing, as on Azure.
    """
    word = MODES.get(str(mode or "incremental").lower())
    if word is None or (is_nested and word == "Complete"):
        hint = "Use the mode 'Incremental'" + ("." if is_nested else " or 'Complete'.")
        raise ArmError(
            400,
            "InvalidDeploymentMode",
            f"The deployment mode '{shorten(str(mode))}' is not supported here. {hint}",
        )
    return word


def _refuse_large(what: str, value: Json) -> None:
    """Raises ArmError if the value is too large.

    The event loop handles the value, and other requests wait meanwhile.
    """
    left = KEPT_VALUES_MAX
    level: list[Any] = [value]
    while level:
        each = level.pop()
        below = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        left -= len(below)
        if left < 0:
            raise invalid(f"{what} would have more than {KEPT_VALUES_MAX:,} values")
        level += below
    if len(msgspec.json.encode(value)) > KEPT_BYTES_MAX:
        raise invalid(f"{what} would have more than {KEPT_BYTES_MAX:,} bytes")


def _first(needs: Mapping[str, Sequence[str]], count: int) -> dict[str, Sequence[str]]:
    """Returns the first entries of `needs` that have at most `count` dependencies in total."""
    found: dict[str, Sequence[str]] = {}
    for id, others in needs.items():
        count -= len(others)
        if count < 0:
            break
        found[id] = others
    return found


def _resource(planned: PlannedResource) -> Resource:
    return Resource(
        planned.id, planned.type, planned.name, planned.api_version, planned.is_deployment
    )
