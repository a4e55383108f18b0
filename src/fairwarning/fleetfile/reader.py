"""Reads a fleet from TOML text, or from the same structure in JSON.

Both go the same way: the decoder checks keys and types, `resources.py` the values. Every
mistake comes out as a FleetProblem with its line, or its pointer if there are no lines.
"""

import re
import tomllib
from collections.abc import Callable
from typing import Any

import msgspec

from fairwarning.fleetfile.model import Fleet
from fairwarning.fleetfile.problems import (
    FleetProblem,
    Misplaced,
    Path,
    from_decoder,
    pointer_of,
)
from fairwarning.fleetfile.resources import resources_of
from fairwarning.fleetfile.shapes import FleetShape
from fairwarning.toml_lines import Lines

KEY_DOTS_MAX = 20
_BETWEEN = re.compile(r"[\"'=,{}\[\]\s]")
_SYNTAX = re.compile(r"(?P<what>.*?)(?: \(at (?:line (?P<line>\d+), .*|end of document)\))?")


def read_toml(text: str, *, origin: str = "file") -> Fleet:
    """Raises FleetProblem. `origin` says who declares it: only a file's may be pruned by one."""
    text, data = parse_toml(text)
    try:
        return _read(data, origin)
    except Misplaced as mistake:
        line_of = Lines(text).of
        raise FleetProblem(
            _with_first(mistake, lambda path: f"line {line_of(path)}"),
            line=line_of(mistake.path),
            pointer=pointer_of(mistake.path),
        ) from None


def parse_toml(text: str) -> tuple[str, dict[str, Any]]:
    """The text as lines count in it, and what it says. Raises FleetProblem with the line."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    _refuse_long_keys(text)
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        raise FleetProblem("this is nested too deeply; three levels are enough") from None
    except ValueError as error:
        raise _syntax_problem(text, str(error)) from None


def _refuse_long_keys(text: str) -> None:
    """The parser's time grows with the square of a dotted key; ours have two parts at most."""
    for number, line in enumerate(text.split("\n"), start=1):
        if any(piece.count(".") > KEY_DOTS_MAX for piece in _BETWEEN.split(line)):
            raise FleetProblem("this key has too many parts; a fleet file needs two", line=number)


def read_json(data: object, *, origin: str = "file") -> Fleet:
    """The same for what a JSON text was decoded to. Raises FleetProblem."""
    try:
        return _read(data, origin)
    except Misplaced as mistake:
        message = _with_first(mistake, pointer_of)
        raise FleetProblem(message, pointer=pointer_of(mistake.path)) from None


def _read(data: object, origin: str) -> Fleet:
    try:
        shape = msgspec.convert(data, FleetShape)
    except msgspec.ValidationError as error:
        raise from_decoder(str(error)) from None
    return Fleet(resources=resources_of(shape, origin))


def _with_first(mistake: Misplaced, where: Callable[[Path], str]) -> str:
    if mistake.first is None:
        return mistake.message
    return f"{mistake.message} (first in {where(mistake.first)})"


def _syntax_problem(text: str, error: str) -> FleetProblem:
    match = _SYNTAX.fullmatch(error)
    what, line = (match["what"], match["line"]) if match else (error, None)
    number = int(line) if line else text.count("\n") + 1
    hint = "a line is `key = value`, `[table]` or `[[array of tables]]`, and strings are quoted"
    return FleetProblem(f"this is not TOML: {what}; {hint}", line=number)
