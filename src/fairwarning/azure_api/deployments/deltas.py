"""Compares a resource as it is with the resource that a template asks for. Pure.

Only what the template writes is compared, because a deployment keeps everything else. Texts that
differ only in upper and lower case are the same, and so are `West Europe` and `westeurope`.
"""

from collections.abc import Iterator
from typing import Any

from fairwarning.azure_api.request import Json

_HEAD = frozenset({"id", "name", "type", "apiversion"})


def deltas_of(before: Json, after: Json) -> list[Json]:
    """Returns the property changes in the form of a what-if result."""
    return [
        delta
        for name, value in after.items()
        if name.lower() not in _HEAD
        for delta in _changes(name, _member(before, name), value)
    ]


def _changes(path: str, before: Any, after: Any) -> Iterator[Json]:
    if after is None:
        return
    if isinstance(after, dict) and isinstance(before, dict):
        for name, value in after.items():
            yield from _changes(f"{path}.{name}", _member(before, name), value)
    elif isinstance(after, list) and isinstance(before, list):
        children = list(_items(before, after))
        if children:
            yield _delta(path, "Array", before, after, children)
    elif before is None:
        if not _is_empty(after):
            yield _delta(path, "Create", None, after)
    elif not _is_same(path, before, after):
        yield _delta(path, "Modify", before, after)


def _items(before: list[Any], after: list[Any]) -> Iterator[Json]:
    for at in range(max(len(before), len(after))):
        if at >= len(after):
            yield _delta(str(at), "Delete", before[at], None)
        elif at >= len(before):
            yield _delta(str(at), "Create", None, after[at])
        else:
            yield from _changes(str(at), before[at], after[at])


def _delta(
    path: str, kind: str, before: Any, after: Any, children: list[Json] | None = None
) -> Json:
    return {
        "path": path,
        "propertyChangeType": kind,
        "before": before,
        "after": after,
        "children": children,
    }


def _member(values: Json, name: str) -> Any:
    if name in values:
        return values[name]
    return next((each for key, each in values.items() if key.lower() == name.lower()), None)


def _is_empty(value: Any) -> bool:
    return value in ({}, [])


def _is_same(path: str, before: Any, after: Any) -> bool:
    one, other = _text(before), _text(after)
    if path == "location":
        return one.replace(" ", "") == other.replace(" ", "")
    return one == other


def _text(value: Any) -> str:
    return str(value).lower()
