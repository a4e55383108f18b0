"""Any value of a type of the core, every field of it drawn, for Hypothesis."""

import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

_INTEGERS = st.integers(min_value=-(2**53), max_value=2**53)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: _INTEGERS,
    str: st.text(max_size=20),
    bool: st.booleans(),
    types.NoneType: st.none(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, NewType):
        return values_of(kind.__supertype__)
    if origin in {Union, types.UnionType}:
        return st.one_of([values_of(each) for each in arguments])
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin in {Mapping, dict}:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    assert isinstance(kind, type)
    if issubclass(kind, Struct):
        hints = get_type_hints(kind)
        drawn = {each.name: values_of(hints[each.name]) for each in fields(kind)}
        return st.builds(kind, **drawn)
    assert issubclass(kind, StrEnum), f"no values of {kind} are known"
    return st.sampled_from(list(kind))
