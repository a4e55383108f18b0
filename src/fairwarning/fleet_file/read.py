"""This module reads a fleet from TOML text, or from the same structure in JSON.

In both cases the decoder checks keys and types, and `resources.py` checks the values. All
mistakes are raised as one FleetProblem, each with its line, or with its JSON pointer if there are
no lines.
"""

from collections.abc import Callable
from typing import Any

from fairwarning.common.toml_lines import Lines
from fairwarning.common.toml_text import NotToml
from fairwarning.common.toml_text import parse_toml as parse_any_toml
from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.core.resources import Resource
from fairwarning.fleet_file.decode import decode
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.problems import (
    FleetMistake,
    FleetProblem,
    Mistakes,
    TooManyInstances,
    TooManyInstancesNoted,
    TooManyMistakes,
)
from fairwarning.fleet_file.resources import FLEET_INSTANCES_MAX, resources_of


def read_toml(
    text: str,
    drivers: DriverCatalogue,
    *,
    is_partial: bool = False,
    instances_max: int = FLEET_INSTANCES_MAX,
) -> Fleet:
    """Return the fleet of a fleet file. `drivers` are the drivers that it may name. Raises
    FleetProblem if it has mistakes, or TooManyInstances if it has too many instances.

    With `is_partial` it declares only a part of the fleet (`partial_declaration.py`).
    """
    text, data = parse_toml(text)
    return _read(
        data,
        drivers,
        instances_max,
        lambda mistakes: mistakes.in_toml(Lines(text).of),
        is_partial=is_partial,
    )


def parse_toml(text: str) -> tuple[str, dict[str, Any]]:
    """Return the text with plain line ends, and its parsed tables. Raises FleetProblem with the
    line if the text is not TOML.
    """
    try:
        return parse_any_toml(text)
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
        shape = decode(data, mistakes)
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
