"""This module describes mistakes in a fleet file: what is wrong, where, and what was expected."""

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fairwarning.core.refusals import Refused
from fairwarning.fleet_file.schema import (
    CHOICES,
    SHAPES,
    ApproveShape,
    FleetShape,
    MemberShape,
)

Path = tuple[str | int, ...]
"""The keys and list positions that lead to a value, such as `("scale_set", 0, "capacity")`."""

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]")
_TYPES = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_FIELD = re.compile(r"Object (?P<how>contains unknown|missing required) field `(?P<key>.*)`")
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "array": "an array",
    "object": "a table",
    "null": "null",
}


class FleetProblem(Exception):
    """A fleet file has a mistake. The message says what to do, and begins with the place if it is
    known.
    """

    def __init__(
        self, message: str, *, line: int | None = None, pointer: str | None = None
    ) -> None:
        place = f"line {line}: " if line is not None else f"{pointer}: " if pointer else ""
        super().__init__(place + message)
        self.message = message
        self.line = line
        """The line in the TOML text, counted from 1. None if it is not known."""
        self.pointer = pointer
        """The JSON pointer of the mistake (RFC 6901). It is empty for the whole document, and None
        if it is not known.
        """


class Crowd(FleetProblem):
    """A declaration has more instances than its reader allows."""


class Misplaced(Exception):
    """A mistake at a path. The reader turns it into a FleetProblem with a line or a pointer."""

    def __init__(self, path: Path, message: str, *, first: Path | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.first = first
        """The path at which the same thing was declared before, or None."""


class CrowdAt(Misplaced):
    """There are too many instances, from the resource at this path on. The reader turns it into a
    Crowd.
    """


@contextmanager
def at(*path: str | int) -> Iterator[None]:
    """Turn a Refused that is raised inside the `with` block into a Misplaced at this path."""
    try:
        yield
    except Refused as refused:
        raise Misplaced(path, refused.message) from None


def pointer_of(path: Path) -> str:
    parts = (str(each).replace("~", "~0").replace("/", "~1") for each in path)
    return "".join(f"/{part}" for part in parts)


def from_decoder(text: str) -> Misplaced:
    """Return the mistake that the decoder found, with a message in the words of a fleet file."""
    match = _AT.fullmatch(text)
    assert match is not None
    path = _path(match["path"] or "")
    field = _FIELD.fullmatch(match["what"])
    if field is not None and field["how"] == "contains unknown":
        known = known_keys(path)
        message = f"unknown key `{field['key']}`; {suggestion(field['key'], known)}"
        return Misplaced((*path, field["key"]), message)
    if field is not None:
        return Misplaced(path, f"`{field['key']}` is missing; add it")
    return Misplaced(path, _wrong_value(path, match["what"]))


def _path(text: str) -> Path:
    steps = _STEP.finditer(text)
    return tuple(each["key"] or int(each["index"]) for each in steps)


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


def known_keys(path: Path) -> tuple[str, ...]:
    """Return the keys that the table at this path may have."""
    last = next((each for each in reversed(path) if isinstance(each, str)), None)
    if last is None:
        return FleetShape.__struct_fields__
    if last == "approve":
        return ApproveShape.__struct_fields__
    if last == "instances":
        return MemberShape.__struct_fields__
    return SHAPES[last].__struct_fields__ if last in SHAPES else ()


def suggestion(word: str, known: Iterable[str]) -> str:
    known = tuple(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"it may be {', '.join(known)}"
