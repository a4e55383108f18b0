"""The parameters of a template: what it declares, and what was given for it."""

from collections.abc import Mapping
from typing import NamedTuple

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import invalid, shown
from fairwarning.azure_api.templates.limits import PARAMETERS_MAX
from fairwarning.azure_api.templates.values import Kind, as_json, kind_of, word_of


class ParameterType(NamedTuple):
    word: str
    """As Azure writes it in its answers."""
    kind: Kind
    expected: str
    """As Azure calls it in its refusals."""
    is_secret: bool = False


TYPES = {
    "string": ParameterType("String", Kind.TEXT, "String, Uri"),
    "securestring": ParameterType("SecureString", Kind.TEXT, "String, Uri", True),
    "int": ParameterType("Int", Kind.INT, "Integer"),
    "bool": ParameterType("Bool", Kind.BOOL, "Boolean"),
    "array": ParameterType("Array", Kind.LIST, "Array"),
    "object": ParameterType("Object", Kind.OBJECT, "Object"),
    "secureobject": ParameterType("SecureObject", Kind.OBJECT, "Object", True),
}
"""Outputs have the same."""


class Declared(NamedTuple):
    name: str
    type: ParameterType
    raw: Json


def type_called(word: object) -> ParameterType | None:
    return TYPES.get(word.lower()) if isinstance(word, str) else None


def declared(raw: object) -> dict[str, Declared]:
    """From `parameters` of a template. Raises ArmError."""
    if not isinstance(raw, dict):
        raise invalid("The parameters of a template must be an object")
    if len(raw) > PARAMETERS_MAX:
        raise invalid(f"A template has at most {PARAMETERS_MAX} parameters; this has {len(raw)}")
    found: dict[str, Declared] = {}
    for name, each in raw.items():
        type = type_called(each.get("type")) if isinstance(each, dict) else None
        if type is None:
            raise invalid(
                f"The template parameter '{shown(name)}' is not valid: it needs a type, which is "
                f"one of {', '.join(TYPES)}"
            )
        found[name] = Declared(name, type, each)
    return found


def given(raw: object, known: Mapping[str, Declared]) -> Json:
    """The values from `parameters` of a deployment, by declared name. Raises ArmError."""
    if not isinstance(raw, dict):
        raise invalid("The parameters of a deployment must be an object")
    keys = {name.lower(): name for name in known}
    names = {name: keys.get(name.lower()) for name in raw}
    unknown = [name for name, key in names.items() if key is None]
    if unknown:
        raise invalid(
            f"The template parameters '{shown(', '.join(unknown))}' in the parameters file are "
            "not valid; they are not present in the original template and can therefore not be "
            "provided at deployment time. The only supported parameters for this template are "
            f"'{', '.join(known)}'"
        )
    return {str(names[name]): _value(name, each) for name, each in raw.items()}


def _value(name: str, raw: object) -> object:
    if isinstance(raw, dict) and "value" in raw:
        return raw["value"]
    if isinstance(raw, dict) and "reference" in raw:
        raise invalid(
            f"The template parameter '{shown(name)}' refers to a key vault, and there is none "
            "here; give its value"
        )
    raise invalid(
        f"The template parameter '{shown(name)}' is not valid: write it as {{\"value\": …}}"
    )


def missing(name: str) -> ArmError:
    return invalid(f"The value for the template parameter '{shown(name)}' is not provided")


def check(parameter: Declared, value: object) -> None:
    """Never repeats the value: it may be a secret. Raises ArmError."""
    if kind_of(value) is not parameter.type.kind:
        raise _unfit(
            parameter,
            f"Expected a value of type '{parameter.type.expected}', but received a value of type "
            f"'{word_of(value)}'",
        )
    allowed = parameter.raw.get("allowedValues")
    if isinstance(allowed, list) and not _is_allowed(value, allowed):
        words = ",".join(each if isinstance(each, str) else as_json(each) for each in allowed)
        raise _unfit(
            parameter,
            f"The parameter value is not part of the allowed value(s): '{shown(words)}'",
        )
    if isinstance(value, int):
        _check_bounds(parameter, value, "Value", "The value")
    elif isinstance(value, str | list):
        _check_bounds(parameter, len(value), "Length", "The length")


def _is_allowed(value: object, allowed: list[object]) -> bool:
    words = {as_json(each) for each in allowed}
    if isinstance(value, list):
        return all(as_json(each) in words for each in value) or as_json(value) in words
    return as_json(value) in words


def _check_bounds(parameter: Declared, number: int, what: str, words: str) -> None:
    least, most = parameter.raw.get(f"min{what}"), parameter.raw.get(f"max{what}")
    if kind_of(least) is Kind.INT and number < least:  # type: ignore[operator]
        raise _unfit(parameter, f"{words} must be at least '{least}'")
    if kind_of(most) is Kind.INT and number > most:  # type: ignore[operator]
        raise _unfit(parameter, f"{words} must be at most '{most}'")


def _unfit(parameter: Declared, why: str) -> ArmError:
    return invalid(
        f"The provided value for the template parameter '{shown(parameter.name)}' is not valid. "
        f"{why}"
    )
