"""These template functions compare values. `if`, `and` and `or` are in the evaluator."""

from collections.abc import Callable
from typing import Any

from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.functions.signature import Function, takes
from fairwarning.azure_api.templates.values import Kind, Value, as_json, kind_of


def is_same(one: Value, other: Value) -> bool:
    """Returns whether the values are equal as JSON. In Python, 1 and True would be equal."""
    return as_json(one) == as_json(other)


def _bool(value: Value) -> bool:
    if isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise TemplateError("the text is neither 'true' nor 'false'")
        return value.lower() == "true"
    return bool(value)


def _comparison(compare: Callable[[Any, Any], bool]) -> Function:
    def apply(one: Value, other: Value) -> bool:
        if kind_of(one) is not kind_of(other):
            raise TemplateError("both arguments must be of the same type")
        return compare(one, other)

    return takes(apply, Kind.INT | Kind.TEXT, Kind.INT | Kind.TEXT)


FUNCTIONS = {
    "equals": takes(is_same, Kind.ANY, Kind.ANY),
    "not": takes(lambda value: not value, Kind.BOOL),
    "bool": takes(_bool, Kind.TEXT | Kind.INT | Kind.BOOL),
    "less": _comparison(lambda one, other: one < other),
    "lessorequals": _comparison(lambda one, other: one <= other),
    "greater": _comparison(lambda one, other: one > other),
    "greaterorequals": _comparison(lambda one, other: one >= other),
    "true": takes(lambda: True),
    "false": takes(lambda: False),
    "null": takes(lambda: None),
}
