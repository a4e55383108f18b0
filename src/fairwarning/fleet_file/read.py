"""This module reads a fleet from TOML text, or from the same structure in JSON.

In both cases the decoder checks keys and types, and `resources.py` checks the values. All
mistakes are raised as one FleetProblem, each with its line, or with its JSON pointer if there are
no lines.
"""

import difflib
import re
from collections.abc import Callable
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from fairwarning.common.toml_lines import Lines, Path
from fairwarning.common.toml_table import suggestion
from fairwarning.common.toml_text import NotToml
from fairwarning.common.toml_text import parse_toml as parse_any_toml
from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.core.resources import Resource
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.problems import (
    FleetMistake,
    FleetProblem,
    Mistakes,
    TooManyInstances,
    TooManyInstancesNoted,
    TooManyMistakes,
    Where,
)
from fairwarning.fleet_file.resources import FLEET_INSTANCES_MAX, resources_of
from fairwarning.fleet_file.schema import (
    CHOICES,
    SHAPES,
    FleetShape,
    MemberShape,
    Table,
)

_TYPES = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "array": "an array",
    "object": "a table",
    "null": "null",
}


def read_toml(
    text: str,
    drivers: DriverCatalogue,
    *,
    is_partial: bool = False,
    instances_max: int = FLEET_INSTANCES_MAX,
    size_factor: int = 1,
) -> Fleet:
    """Return the fleet of a fleet file. `drivers` are the drivers that it may name. Raises
    FleetProblem if it has mistakes, or TooManyInstances if it has too many instances.

    With `is_partial` it declares only a part of the fleet (`partial_declaration.py`). It may have
    `size_factor` times as many keys and values as other TOML files.
    """
    text, data = parse_toml(text, size_factor)
    return _read(
        data,
        drivers,
        instances_max,
        lambda mistakes: mistakes.in_toml(Lines(text).of),
        is_partial=is_partial,
    )


def parse_toml(text: str, size_factor: int = 1) -> tuple[str, dict[str, Any]]:
    """Return the text with plain line ends, and its parsed tables. Raises FleetProblem with the
    line if the text is not TOML.
    """
    try:
        return parse_any_toml(text, size_factor)
    except NotToml as problem:
        raise FleetProblem([FleetMistake(message=problem.message, line=problem.line)]) from None


def read_json(
    data: object,
    drivers: DriverCatalogue,
    *,
    is_partial: bool = False,
    instances_max: int = FLEET_INSTANCES_MAX,
) -> Fleet:
    """Return the fleet in decoded JSON, by the same rules as `read_toml`. Raises FleetProblem or
    TooManyInstances.
    """
    return _read(data, drivers, instances_max, Mistakes.in_json, is_partial=is_partial)


def _read(
    data: Any,
    drivers: DriverCatalogue,
    instances_max: int,
    described: Callable[[Mistakes], list[FleetMistake]],
    *,
    is_partial: bool,
) -> Fleet:
    mistakes, kind = Mistakes(), FleetProblem
    resources: tuple[Resource, ...] = ()
    try:
        shape = _decode(data, mistakes)
        resources = resources_of(
            shape, data, drivers, instances_max, mistakes, is_partial=is_partial
        )
    except TooManyMistakes:
        pass
    except TooManyInstancesNoted:
        kind = TooManyInstances
    if mistakes:
        raise kind(described(mistakes))
    return Fleet(resources=resources)


def _decode(data: Any, mistakes: Mistakes) -> FleetShape:
    """Return the fleet in `data`. Wrong values are noted in `mistakes` and left out.

    The decoder of msgspec stops at the first mistake. So a file with a mistake is decoded again
    table by table and value by value: a wrong value is noted and left out, and the rest is decoded.
    """
    try:
        return msgspec.convert(data, FleetShape)
    except msgspec.ValidationError:
        found = _value(data, FleetShape, Where((), mistakes))
        return found if isinstance(found, FleetShape) else FleetShape()


def _value(value: Any, kind: Any, where: Where) -> Any:
    """Return the value as a `kind`, or msgspec.UNSET if it is wrong."""
    shape = _shape_in(kind)
    if isinstance(value, dict) and shape is not None:
        return _table(value, shape, where)
    if isinstance(value, list) and get_origin(kind) is list:
        (inner,) = get_args(kind)
        return [_element(each, inner, where[number]) for number, each in enumerate(value)]
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        where.wrong(_wrong_value(where.path, str(error)))
        return msgspec.UNSET


def _element(value: Any, kind: Any, where: Where) -> Any:
    """Return the element of a list. A neutral value stands for a wrong one, so that the positions
    of the others stay the same.
    """
    found = _value(value, kind, where)
    if found is not msgspec.UNSET:
        return found
    shape = _shape_in(kind)
    return "" if shape in (None, MemberShape) else shape(name="")


def _shape_in(kind: Any) -> Any:
    """Return the type of table that a `kind` allows, or None."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    types = (each for each in kinds if isinstance(each, type))
    return next((each for each in types if issubclass(each, Struct)), None)


def _table(data: Table, shape: type[Struct], where: Where) -> Struct:
    fields = {each.name: each for each in structs.fields(shape)}
    for key in (each for each in data if each not in fields):
        where[key].wrong(f"unknown key `{key}`; {suggestion(key, fields)}")
        for near in difflib.get_close_matches(key, fields, n=1):
            where[near].ignore()  # A misspelled key is not also missing.
    values = {}
    for key, field in fields.items():
        found = _value(data[key], field.type, where[key]) if key in data else msgspec.UNSET
        if found is not msgspec.UNSET:
            values[key] = found
        elif field.required:
            where[key].wrong(f"`{key}` is missing; add it", shown_at=where.path)
            values[key] = ""
    return shape(**values)


def _wrong_value(path: Path, what: str) -> str:
    key = str(path[-1]) if path else "the fleet"
    name = f"`{key}`" if path and isinstance(path[-1], str) else "this"
    types = _TYPES.fullmatch(what)
    if types is None:
        choices = CHOICES.get(key, ())
        return f"{name} is none of {', '.join(choices)}" if choices else f"{name}: {what}"
    wanted = [each for each in types["wanted"].split(" | ") if each != "null"]
    text = (
        f"{name} must be {' or '.join(_word(each) for each in wanted)}, not {_word(types['got'])}"
    )
    is_table = key in SHAPES and types["got"] == "object"
    return f"{text}; begin each with [[{key}]]" if is_table else text


def _word(type_name: str) -> str:
    return _WORDS.get(type_name, f"a {type_name}")
