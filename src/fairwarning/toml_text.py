"""Reads TOML text: the one way for every TOML file, so that no text can end in anything but a
value or a `NotToml` with its line.
"""

import re
import tomllib
from typing import Any

from fairwarning.toml_guard import TooCostly, refuse_costly

_SYNTAX = re.compile(r"(?P<what>.*?)(?: \(at (?:line (?P<line>\d+), .*|end of document)\))?")
_HINT = "a line is `key = value`, `[table]` or `[[array of tables]]`, and strings are quoted"


class NotToml(ValueError):
    """`message` says what is wrong and what to do, `line` where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


def parse_toml(text: str) -> tuple[str, dict[str, Any]]:
    """The text as lines count in it, and what it says. Raises NotToml."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        refuse_costly(text)
        return text, tomllib.loads(text)
    except TooCostly as problem:
        raise NotToml(problem.message, problem.line) from None
    except ValueError as error:
        raise _syntax_problem(text, str(error)) from None


def _syntax_problem(text: str, error: str) -> NotToml:
    match = _SYNTAX.fullmatch(error)
    what, line = (match["what"], match["line"]) if match else (error, None)
    number = int(line) if line else text.count("\n") + 1
    return NotToml(f"this is not TOML: {what}; {_HINT}", number)
