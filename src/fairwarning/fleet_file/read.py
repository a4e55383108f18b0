"""This module reads a fleet from TOML text, or from the same structure in JSON.

In both cases the decoder checks keys and types, and `resources.py` checks the values. A mistake is
raised as a FleetProblem with its line, or with its JSON pointer if there are no lines.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from fairwarning.common.toml_lines import Lines
from fairwarning.common.toml_text import NotToml
from fairwarning.common.toml_text import parse_toml as parse_any_toml
from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.problems import (
    Crowd,
    CrowdAt,
    FleetProblem,
    Misplaced,
    Path,
    from_decoder,
    pointer_of,
)
from fairwarning.fleet_file.resources import FLEET_INSTANCES_MAX, resources_of
from fairwarning.fleet_file.schema import FleetShape


def read_toml(
    text: str,
    drivers: DriverCatalogue,
    *,
    is_partial: bool = False,
    instances_max: int = FLEET_INSTANCES_MAX,
) -> Fleet:
    """Return the fleet of a fleet file. `drivers` are the drivers that it may name. Raises
    FleetProblem if it has a mistake, or Crowd if it has too many instances.

    With `is_partial` it declares only a part of the fleet (`partial_declaration.py`).
    """
    text, data = parse_toml(text)
    try:
        return _read(data, drivers, instances_max, is_partial=is_partial)
    except Misplaced as mistake:
        line_of = Lines(text).of
        raise _kind_of(mistake)(
            _with_first(mistake, lambda path: f"line {line_of(path)}"),
            line=line_of(mistake.path),
            pointer=pointer_of(mistake.path),
        ) from None


def parse_toml(text: str) -> tuple[str, dict[str, Any]]:
    """Return the text with plain line ends, and its parsed tables. Raises FleetProblem with the
    line if the text is not TOML.
    """
    try:
        return parse_any_toml(text)
    except NotToml as problem:
        raise FleetProblem(problem.message, line=problem.line) from None


def read_json(
    data: object,
    drivers: DriverCatalogue,
    *,
    is_partial: bool = False,
    instances_max: int = FLEET_INSTANCES_MAX,
) -> Fleet:
    """Return the fleet in decoded JSON, by the same rules as `read_toml`. Raises FleetProblem or
    Crowd.
    """
    try:
        return _read(data, drivers, instances_max, is_partial=is_partial)
    except Misplaced as mistake:
        message = _with_first(mistake, pointer_of)
        raise _kind_of(mistake)(message, pointer=pointer_of(mistake.path)) from None


def _read(data: Any, drivers: DriverCatalogue, instances_max: int, *, is_partial: bool) -> Fleet:
    try:
        shape = msgspec.convert(data, FleetShape)
    except msgspec.ValidationError as error:
        raise from_decoder(str(error)) from None
    return Fleet(resources=resources_of(shape, data, drivers, instances_max, is_partial=is_partial))


def _kind_of(mistake: Misplaced) -> type[FleetProblem]:
    return Crowd if isinstance(mistake, CrowdAt) else FleetProblem


def _with_first(mistake: Misplaced, where: Callable[[Path], str]) -> str:
    if mistake.first is None:
        return mistake.message
    return f"{mistake.message} (first in {where(mistake.first)})"
