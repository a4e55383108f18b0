"""`$filter` on the instances of a scale set: the conditions that Azure documents. Pure."""

import re
from collections.abc import Callable

from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.fleet import Machine
from fairwarning.control.arm.instance_views import status_codes

Condition = Callable[[Machine], bool]

_MODEL = re.compile(r"properties/latestModelApplied\s+eq\s+(true|false)", re.IGNORECASE)
_STATUS = re.compile(
    r"startswith\(\s*(?:properties/)?instanceView/statuses/code\s*,\s*'([^']*)'\s*\)"
    r"(?:\s+eq\s+(true|false))?",
    re.IGNORECASE,
)


def condition_of(text: str) -> Condition:
    """Parts joined by `and` must all hold. Raises ArmError."""
    parts = [_one(each) for each in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE)]
    return lambda machine: all(holds(machine) for holds in parts)


def _one(text: str) -> Condition:
    model = _MODEL.fullmatch(text)
    if model is not None:
        wanted = model[1].lower() == "true"
        return lambda each: each.scope.roster.latest_model_applied(each.instance) is wanted
    status = _STATUS.fullmatch(text)
    if status is not None:
        start, wanted = status[1].lower(), (status[2] or "true").lower() == "true"
        return lambda each: _has_status(each, start) is wanted
    raise ArmError(
        400,
        "InvalidFilterInQueryString",
        f"The $filter '{text[:100]}' is not supported; use properties/latestModelApplied eq true, "
        "or startswith(instanceView/statuses/code, 'PowerState/running') eq true.",
    )


def _has_status(machine: Machine, start: str) -> bool:
    return any(code.lower().startswith(start) for code in status_codes(machine))
