"""Templates within templates.

With `expressionEvaluationOptions.scope` of `inner` the nested template is left alone: its
expressions are its own. Otherwise they belong to the template around it, as on Azure, and what
they stand for must not be taken for expressions a second time.
"""

from typing import Any

from fairwarning.control.arm.call import Json
from fairwarning.control.arm.templates.expanding import Planned
from fairwarning.control.arm.templates.syntax import escaped


def parted(planned: Planned) -> tuple[Json, object]:
    """What this template evaluates of a resource, and what it leaves to another."""
    properties = planned.raw.get("properties")
    if not planned.is_deployment or not isinstance(properties, dict) or not _is_inner(properties):
        return planned.raw, None
    outer = {name: value for name, value in properties.items() if name != "template"}
    return {**planned.raw, "properties": outer}, properties.get("template")


def joined(planned: Planned, body: Json, inner: object) -> Json:
    properties = body.get("properties")
    if not planned.is_deployment or not isinstance(properties, dict):
        return body
    template = _escaped(properties.get("template")) if inner is None else inner
    return {**body, "properties": {**properties, "template": template}}


def _is_inner(properties: Json) -> bool:
    options = properties.get("expressionEvaluationOptions")
    scope = options.get("scope") if isinstance(options, dict) else None
    return isinstance(scope, str) and scope.lower() == "inner"


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return escaped(value)
        case dict():
            return {escaped(name): _escaped(each) for name, each in value.items()}
        case list():
            return [_escaped(each) for each in value]
        case _:
            return value
