"""The words of an expression."""

import re
from typing import NamedTuple

from fairwarning.control.arm.templates.faults import Fault, shown

_WORDS = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)|(?P<number>-?[0-9]+)"
    r"|(?P<text>'(?:[^']|'')*')|(?P<mark>[(),.\[\]])"
)


class Token(NamedTuple):
    kind: str
    """`name`, `number`, `text`, `mark` or `end`."""
    text: str
    at: int


def tokens(text: str) -> list[Token]:
    """Ends with a token of kind `end`. Raises Fault."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _WORDS.match(text, at)
        if match is None or match.lastgroup is None:
            raise Fault(f"Unable to parse language expression '{shown(text)}': {_unread(text, at)}")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], at))
        at = match.end()
    return [*found, Token("end", "", len(text))]


def _unread(text: str, at: int) -> str:
    if text[at] == "'":
        return f"the string that begins at position {at} does not end."
    return f"unexpected character '{text[at]}' at position {at}."
