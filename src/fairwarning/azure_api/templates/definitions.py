"""Replaces references to user-defined types by what the template defines for them.

Only the constraints of the type itself count. The properties of an object are not checked.
"""

from typing import Any

from fairwarning.azure_api.templates.errors import invalid, shorten

_START = "#/definitions/"
_STEPS_MAX = 20


def with_definitions(members: object, definitions: object) -> Any:
    """Returns `parameters` or `outputs` of a template without `$ref`. Raises ArmError."""
    if not isinstance(members, dict):
        return members
    known = definitions if isinstance(definitions, dict) else {}
    return {name: _resolved(each, known) for name, each in members.items()}


def _resolved(raw: Any, known: dict[str, Any]) -> Any:
    for _ in range(_STEPS_MAX):
        if not isinstance(raw, dict) or "$ref" not in raw:
            return raw
        target = str(raw["$ref"])
        name = target.removeprefix(_START)
        definition = known.get(name)
        if not target.startswith(_START) or not isinstance(definition, dict):
            break
        rest = {key: value for key, value in raw.items() if key != "$ref"}
        raw = {**definition, **rest}
    raise invalid(f"The type '{shorten(str(raw['$ref']))}' is not defined in the template")
