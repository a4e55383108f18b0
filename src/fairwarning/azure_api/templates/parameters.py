"""Reads the parameters of a template, and checks the values that a deployment gives them."""

from collections.abc import Mapping
from typing import NamedTuple

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import invalid, shorten
from fairwarning.azure_api.templates.limits import PARAMETERS_MAX
from fairwarning.azure_api.templates.values import Kind, as_json, kind_of, type_name


class ParameterType(NamedTuple):
    word: str
    """The name of the type in Azure's replies."""
    kind: Kind
    expected: str
    """The name of the type in Azure's error messages."""
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
"""The types of parameters and outputs."""


class Parameter(NamedTuple):
    name: str
    type: ParameterType
    raw: Json


def find_type(word: object) -> ParameterType | None:
    return TYPES.get(word.lower()) if isinstance(word, str) else None


def read_parameters(raw: object) -> dict[str, Parameter]:
    """Reads `parameters` of a template. Raises ArmError."""
    if not isinstance(raw, dict):
        raise invalid("The parameters of a template must be an object")
    if len(raw) > PARAMETERS_MAX:
        raise invalid(f"A template has at most {PARAMETERS_MAX} parameters; this has {len(raw)}")
    found: dict[str, Parameter] = {}
    for name, each in raw.items():
        type = find_type(each.get("type")) if isinstance(each, dict) else None
        if type is None:
            raise invalid(
                f"The template parameter '{shorten(name)}' is not valid: it needs a type, which is "
                f"one of {', '.join(TYPES)}"
            )
        found[name] = Parameter(name, type, each)
    return found


def read_values(raw: object, known: Mapping[str, Parameter]) -> Json:
    """Returns the values in `parameters` of a deployment, by the names that the template declares.

    Raises ArmError if a parameter is unknown or has no valid value.
    """
    if not isinstance(raw, dict):
        raise invalid("The parameters of a deployment must be an object")
    keys = {name.lower(): name for name in known}
    names = {name: keys.get(name.lower()) for name in raw}
    unknown = [name for name, key in names.items() if key is None]
    if unknown:
        raise invalid(
            f"The template parameters '{shorten(', '.join(unknown))}' in the parameters file are "
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
            f"The template parameter '{shorten(name)}' refers to a key vault, and there is none "
            "here; give its value"
        )
    raise invalid(
        f"The template parameter '{shorten(name)}' is not valid: write it as {{\"value\": …}}"
    )


def missing_value(name: str) -> ArmError:
    return invalid(f"The value for the template parameter '{shorten(name)}' is not provided")


def check_value(parameter: Parameter, value: object) -> None:
    """Raises ArmError if the value is not valid for the parameter.

    The message does not contain the value, because the value may be a secret.
    """
    if kind_of(value) is not parameter.type.kind:
        raise _bad_value(
            parameter,
            f"Expected a value of type '{parameter.type.expected}', but received a value of type "
            f"'{type_name(value)}'",
        )
    allowed = parameter.raw.get("allowedValues")
    if isinstance(allowed, list) and not _is_allowed(value, allowed):
        words = ",".join(each if isinstance(each, str) else as_json(each) for each in allowed)
        raise _bad_value(
            parameter,
            f"The parameter value is not part of the allowed value(s): '{shorten(words)}'",
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


def _check_bounds(parameter: Parameter, number: int, what: str, words: str) -> None:
    least, most = parameter.raw.get(f"min{what}"), parameter.raw.get(f"max{what}")
    if kind_of(least) is Kind.INT and number < least:  # type: ignore[operator]
        raise _bad_value(parameter, f"{words} must be at least '{least}'")
    if kind_of(most) is Kind.INT and number > most:  # type: ignore[operator]
        raise _bad_value(parameter, f"{words} must be at most '{most}'")


def _bad_value(parameter: Parameter, why: str) -> ArmError:
    return invalid(
        f"The provided value for the template parameter '{shorten(parameter.name)}' is not valid. "
        f"{why}"
    )
