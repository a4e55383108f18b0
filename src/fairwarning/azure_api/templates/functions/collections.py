"""These template functions work on arrays and objects. Some of them also accept texts."""

from typing import cast

from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.functions.signature import takes, takes_many
from fairwarning.azure_api.templates.functions.text import check_length, to_text
from fairwarning.azure_api.templates.values import Kind, Value, as_json, find_key, kind_of

_LISTED = Kind.TEXT | Kind.LIST
_SIZED = Kind.TEXT | Kind.LIST | Kind.OBJECT
_JOINED = Kind.LIST | Kind.OBJECT


def _concat(*values: Value) -> Value:
    if any(isinstance(each, list) for each in values):
        if not all(isinstance(each, list) for each in values):
            raise TemplateError("all arguments must be arrays if one of them is")
        return [each for part in cast(tuple[list[Value], ...], values) for each in part]
    return check_length("".join(to_text(each) for each in values))


def _contains(where: Value, what: Value) -> bool:
    match where:
        case str():
            return to_text(what) in where
        case list():
            wanted = as_json(what)
            return any(as_json(each) == wanted for each in where)
        case _:
            assert isinstance(where, dict)
            return find_key(where, to_text(what)) is not None


def _create_object(*parts: Value) -> Value:
    if len(parts) % 2:
        raise TemplateError("it takes names and values in turn")
    found: dict[str, Value] = {}
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        if not isinstance(name, str):
            raise TemplateError("a name must be a string")
        found[name] = value
    return found


def _union(*values: Value) -> Value:
    _refuse_mixture(values)
    if isinstance(values[0], list):
        listed = (each for part in cast(tuple[list[Value], ...], values) for each in part)
        return list({as_json(each): each for each in listed}.values())
    merged: dict[str, Value] = {}
    for each in cast(tuple[dict[str, Value], ...], values):
        _merge(merged, each)
    return merged


def _merge(target: dict[str, Value], other: dict[str, Value]) -> None:
    """Merges `other` into `target`.

    It copies the objects of `other`, so that `other` never changes.
    """
    for name, value in other.items():
        if not isinstance(value, dict):
            target[name] = value
            continue
        before = target.get(name)
        inner = before if isinstance(before, dict) else {}
        target[name] = inner
        _merge(inner, value)


def _intersection(*values: Value) -> Value:
    _refuse_mixture(values)
    if isinstance(values[0], list):
        common = {as_json(each): each for each in values[0]}
        for part in cast(tuple[list[Value], ...], values[1:]):
            here = {as_json(each) for each in part}
            common = {key: each for key, each in common.items() if key in here}
        return list(common.values())
    common = dict(cast(dict[str, Value], values[0]))
    for each in cast(tuple[dict[str, Value], ...], values[1:]):
        common = {
            name: value
            for name, value in common.items()
            if name in each and as_json(each[name]) == as_json(value)
        }
    return common


def _refuse_mixture(values: tuple[Value, ...]) -> None:
    if len({kind_of(each) for each in values}) > 1:
        raise TemplateError("all arguments must be arrays, or all objects")


def _first(value: str | list[Value]) -> Value:
    return value[0] if value else ("" if isinstance(value, str) else None)


def _last(value: str | list[Value]) -> Value:
    return value[-1] if value else ("" if isinstance(value, str) else None)


FUNCTIONS = {
    "concat": takes_many(_concat, Kind.ANY),
    "length": takes(len, _SIZED),
    "empty": takes(lambda value: not value, _SIZED | Kind.NULL),
    "contains": takes(_contains, _SIZED, Kind.ANY),
    "createarray": takes_many(lambda *values: list(values), Kind.ANY, least=0),
    "createobject": takes_many(_create_object, Kind.ANY, least=0),
    "array": takes(lambda value: value if isinstance(value, list) else [value], Kind.ANY),
    "union": takes_many(_union, _JOINED),
    "intersection": takes_many(_intersection, _JOINED),
    "first": takes(_first, _LISTED),
    "last": takes(_last, _LISTED),
    "take": takes(lambda value, count: value[: max(0, count)], _LISTED, Kind.INT),
    "skip": takes(lambda value, count: value[max(0, count) :], _LISTED, Kind.INT),
}
