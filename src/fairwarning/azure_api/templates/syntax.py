"""Parses expressions of templates into syntax trees.

A string in brackets is an expression. If it starts with `[[`, it is a plain string that starts with
a single bracket.
"""

import re
from typing import NamedTuple

from fairwarning.azure_api.templates.errors import TemplateError, shorten
from fairwarning.azure_api.templates.limits import EXPRESSION_LENGTH_MAX, NESTING_MAX

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Literal(NamedTuple):
    value: str | int


class Property(NamedTuple):
    name: str


class Index(NamedTuple):
    node: "Node"


class Call(NamedTuple):
    name: str
    """The name as it is written, with its namespace if it has one."""
    arguments: tuple["Node", ...]
    steps: tuple[Property | Index, ...]
    """The properties and indexes that follow the call. They are applied to its result in order."""


Node = Literal | Call


def is_expression(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and not text.startswith("[[")


def unescaped(text: str) -> str:
    """Returns the text of a string that is no expression. It changes a leading `[[` into `[`."""
    return text[1:] if text.startswith("[[") and text.endswith("]") else text


def escaped(text: str) -> str:
    """Returns `text` in a form that is not read as an expression."""
    return f"[{text}" if text.startswith("[") and text.endswith("]") else text


def parse(text: str) -> Node:
    """Parses a whole expression with its brackets. Raises TemplateError."""
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise TemplateError(f"an expression has more than {EXPRESSION_LENGTH_MAX} characters")
    return _Parser(text[1:-1]).parse_all()


class Token(NamedTuple):
    kind: str
    """`name`, `number`, `text`, `mark` or `end`."""
    text: str
    at: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0

    def parse_all(self) -> Node:
        node = self._node()
        self._expect("")
        return node

    def _node(self) -> Node:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise TemplateError(f"an expression is nested more than {NESTING_MAX} levels deep")
        token = self._next()
        match token.kind:
            case "text":
                node: Node = Literal(token.text[1:-1].replace("''", "'"))
            case "number":
                node = Literal(self._number(token))
            case "name":
                node = self._call(token.text)
            case _:
                raise self._unexpected(token)
        self._depth -= 1
        return node

    def _call(self, name: str) -> Call:
        while self._take("."):
            name += f".{self._name()}"
        self._expect("(")
        arguments: list[Node] = []
        if not self._take(")"):
            arguments.append(self._node())
            while self._take(","):
                arguments.append(self._node())
            self._expect(")")
        return Call(name, tuple(arguments), self._steps())

    def _steps(self) -> tuple[Property | Index, ...]:
        steps: list[Property | Index] = []
        while True:
            if self._take("."):
                steps.append(Property(self._name()))
            elif self._take("["):
                steps.append(Index(self._node()))
                self._expect("]")
            else:
                return tuple(steps)

    def _number(self, token: Token) -> int:
        # A number with more digits is too large in any case, and Python may refuse to convert it.
        number = int(token.text) if len(token.text) <= 20 else INT_MAX + 1
        if not INT_MIN <= number <= INT_MAX:
            raise self._wrong(f"the number at position {token.at} is too large.")
        return number

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise self._unexpected(token)
        return token.text

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _take(self, mark: str) -> bool:
        token = self._tokens[self._at]
        is_there = token.kind == "mark" and token.text == mark
        self._at += is_there
        return is_there

    def _expect(self, mark: str) -> None:
        """Takes the next token. Raises TemplateError if it is not `mark`.

        An empty `mark` means the end of the expression.
        """
        token = self._next()
        if token.text != mark or token.kind not in ("mark", "end"):
            raise self._unexpected(token, f"'{mark}'" if mark else "the end")

    def _unexpected(self, token: Token, wanted: str = "a value") -> TemplateError:
        found = f"'{shorten(token.text)}'" if token.kind != "end" else "the end"
        return self._wrong(f"expected {wanted} and found {found} at position {token.at}.")

    def _wrong(self, why: str) -> TemplateError:
        return TemplateError(f"Unable to parse language expression '{shorten(self._text)}': {why}")


_WORDS = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)|(?P<number>-?[0-9]+)"
    r"|(?P<text>'(?:[^']|'')*')|(?P<mark>[(),.\[\]])"
)


def tokens(text: str) -> list[Token]:
    """Returns the tokens of an expression.

    The last one has the kind `end`. Raises TemplateError.
    """
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _WORDS.match(text, at)
        if match is None or match.lastgroup is None:
            raise TemplateError(
                f"Unable to parse language expression '{shorten(text)}': "
                f"{_why_unreadable(text, at)}"
            )
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], at))
        at = match.end()
    return [*found, Token("end", "", len(text))]


def _why_unreadable(text: str, at: int) -> str:
    if text[at] == "'":
        return f"the string that begins at position {at} does not end."
    return f"unexpected character '{text[at]}' at position {at}."
