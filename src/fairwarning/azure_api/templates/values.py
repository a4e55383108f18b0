"""Defines the values of expressions, which are JSON values, and the names of their types."""

from enum import Flag, auto

import msgspec

from fairwarning.azure_api.request import Json

Value = str | int | float | bool | list["Value"] | dict[str, "Value"] | None


class Kind(Flag):
    """The kinds of values that a function takes."""

    TEXT = auto()
    INT = auto()
    FLOAT = auto()
    BOOL = auto()
    LIST = auto()
    OBJECT = auto()
    NULL = auto()
    ANY = TEXT | INT | FLOAT | BOOL | LIST | OBJECT | NULL


_WORDS = {
    Kind.TEXT: "String",
    Kind.INT: "Integer",
    Kind.FLOAT: "Float",
    Kind.BOOL: "Boolean",
    Kind.LIST: "Array",
    Kind.OBJECT: "Object",
    Kind.NULL: "Null",
}


def kind_of(value: object) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOL
        case int():
            return Kind.INT
        case float():
            return Kind.FLOAT
        case str():
            return Kind.TEXT
        case list():
            return Kind.LIST
        case _:
            return Kind.OBJECT


def type_name(value: object) -> str:
    return _WORDS[kind_of(value)]


def type_names(kind: Kind) -> str:
    return ", ".join(word for each, word in _WORDS.items() if each in kind)


def as_json(value: object) -> str:
    """Returns the value as JSON with sorted keys. Equal values give the same text."""
    return msgspec.json.encode(value, order="sorted").decode()


def find_key(found: Json, name: str) -> str | None:
    """Returns the key that equals `name` without regard to case. It is None if there is none."""
    if name in found:
        return name
    wanted = name.lower()
    return next((key for key in found if key.lower() == wanted), None)
