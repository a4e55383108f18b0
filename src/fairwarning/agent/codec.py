"""Frozen dataclasses to JSON and back, by their types. Pure.

What is written by one version is read by the next: a field that is not there has its
default, and one that nobody knows any more is left out.
"""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
KIND = "kind"
"""Says which dataclass of several it is."""


class Unreadable(ValueError):
    """The JSON is not of this type."""


def encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        shown = {each.name: encode(getattr(value, each.name)) for each in fields(value)}
        return {KIND: type(value).__name__, **shown}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return [encode(each) for each in value]
    return value


def decode(type_: type[T], raw: Any) -> T:
    """Raises Unreadable."""
    try:
        found: T = _decode(type_, raw)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise Unreadable(f"no {type_.__name__}: {problem!r}") from None
    return found


def _decode(wanted: Any, raw: Any) -> Any:
    origin = get_origin(wanted)
    if wanted is Any:
        return raw
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(wanted), raw)
    if origin is tuple:
        return _decode_tuple(get_args(wanted), raw)
    if origin is frozenset:
        return frozenset(_decode(get_args(wanted)[0], each) for each in raw)
    if origin is not None and issubclass(origin, Mapping):
        _, of = get_args(wanted)
        return {key: _decode(of, each) for key, each in raw.items()}
    if is_dataclass(wanted):
        return _decode_fields(wanted, raw)
    if wanted is datetime:
        return datetime.fromisoformat(raw)
    if issubclass(wanted, StrEnum):
        return wanted(raw)
    return _plain(wanted, raw)


def _plain(wanted: Any, raw: Any) -> Any:
    if wanted is float and isinstance(raw, int) and not isinstance(raw, bool):
        return float(raw)
    if type(raw) is not wanted:
        raise Unreadable(f"{raw!r} is no {wanted.__name__}")
    return raw


def _decode_union(choices: tuple[Any, ...], raw: Any) -> Any:
    if raw is None and types.NoneType in choices:
        return None
    rest = [each for each in choices if each is not types.NoneType]
    if len(rest) == 1:
        return _decode(rest[0], raw)
    chosen = next((each for each in rest if each.__name__ == raw[KIND]), None)
    if chosen is None:
        raise Unreadable(f"{raw[KIND]!r} is unknown")
    return _decode(chosen, raw)


def _decode_tuple(of: tuple[Any, ...], raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise Unreadable(f"{raw!r} is no list")
    if of[-1] is ...:
        return tuple(_decode(of[0], each) for each in raw)
    return tuple(_decode(type_, each) for type_, each in zip(of, raw, strict=True))


def _decode_fields(wanted: Any, raw: Any) -> Any:
    hints = _hints(wanted)
    return wanted(**{name: _decode(hints[name], raw[name]) for name in hints if name in raw})


@cache
def _hints(type_: Any) -> dict[str, Any]:
    names = {each.name for each in fields(type_) if each.init}
    return {name: hint for name, hint in get_type_hints(type_).items() if name in names}
