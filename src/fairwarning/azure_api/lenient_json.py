"""Parses the lenient JSON of templates. Pure.

`az deployment` sends the text of a template file unchanged. It can have comments, strings over
several lines, trailing commas and keys without quotes.
"""

import re
from collections.abc import Iterator

import msgspec

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Json

DEPTH_MAX = 100
TEMPLATE_VALUES_MAX = 200_000

# The patterns read no text twice, and no group repeats without limit: each repetition takes memory
# until the match ends. They have no possessive quantifiers: Python 3.11.2, which Debian 12 has,
# handles nested ones wrongly.
_PLAIN = re.compile(r'[^"/,:\[\]{}A-Za-z_$]+')
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_SPACE = re.compile(r"\s*")
_INSIDE = re.compile(r'(?:[^"\\]+|\\.){0,1000}', re.DOTALL)


class TooMuch(ValueError):
    """The text nests too deeply, or has too many values."""


def strict_json(text: str, values_max: int = TEMPLATE_VALUES_MAX) -> str:
    """Returns the text as strict JSON. Other mistakes stay in the text, and the parser finds them.

    Raises TooMuch if the text nests too deeply or has more than `values_max` values.
    """
    return "".join(_Normalizer(text, values_max).parts())


def json_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """Runs `strict_json` in another process.

    `given` yields the maximum number of values and then the text. The result is `ok` and the strict
    JSON, or `wrong` and the reason.
    """
    try:
        values_max, text = int(next(given)), next(given).decode()
        yield from (b"ok", strict_json(text, values_max).encode())
    except (TooMuch, UnicodeDecodeError) as problem:
        yield from (b"wrong", str(problem).encode())


def read_json(raw: bytes, values_max: int = TEMPLATE_VALUES_MAX) -> Json | None:
    """Parses a body. Returns None if the body is empty. Raises ArmError if it is not an object."""
    if not raw.strip():
        return None
    try:
        return object_in(strict_json(raw.decode(), values_max).encode())
    except (TooMuch, UnicodeDecodeError) as problem:
        raise not_understood(str(problem)) from None


def object_in(strict: bytes) -> Json:
    try:
        body = msgspec.json.decode(strict)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise not_understood(str(problem)) from None
    if not isinstance(body, dict):
        raise not_understood(f"it is of type {type(body).__name__}; send a JSON object")
    return body


def not_understood(why: str) -> ArmError:
    return ArmError(
        400,
        "InvalidRequestContent",
        f"The request content was invalid and could not be deserialized: '{why}'.",
    )


class _Normalizer:
    def __init__(self, text: str, values_max: int) -> None:
        self._text = text
        self._values_max = values_max
        self._at = 0
        self._depth = 0
        self._values = 0

    def parts(self) -> Iterator[str]:
        text = self._text
        comma = ""
        """A comma that was read but not written yet. It is dropped if it is a trailing comma."""
        while self._at < len(text):
            mark = text[self._at]
            if mark == "/" and (gap := self._comment()):
                yield gap
                continue
            if mark.isspace():
                yield self._take(_SPACE)
                continue
            if comma and mark not in "]}":
                yield comma
            comma = ""
            match mark:
                case '"':
                    yield self._string()
                case ",":
                    comma = mark
                    self._at += 1
                    self._count()
                case "[" | "{" | "]" | "}" | ":" | "/":
                    self._nest(mark)
                    self._at += 1
                    yield mark
                case _ if (mark.isascii() and mark.isalpha()) or mark in "_$":
                    yield self._name()
                case _:
                    yield self._take(_PLAIN)
        yield comma

    def _nest(self, mark: str) -> None:
        if mark in "[{":
            self._depth += 1
            self._count()
            if self._depth > DEPTH_MAX:
                raise TooMuch(f"it is nested more than {DEPTH_MAX} levels deep")
        elif mark in "]}":
            self._depth -= 1

    def _count(self) -> None:
        self._values += 1
        if self._values > self._values_max:
            raise TooMuch(f"it has more than {self._values_max:,} values")

    def _string(self) -> str:
        start = self._at
        self._at += 1
        while (found := _INSIDE.match(self._text, self._at)) is not None:
            if found.end() == self._at:
                break
            self._at = found.end()
        self._at += self._text.startswith('"', self._at)
        whole = self._text[start : self._at]
        return whole.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")

    def _comment(self) -> str:
        """Skips a comment and returns a blank. Returns an empty string if there is no comment."""
        text, start = self._text, self._at
        if text.startswith("//", start):
            end = text.find("\n", start)
            self._at = len(text) if end < 0 else end
        elif text.startswith("/*", start):
            end = text.find("*/", start + 2)
            self._at = len(text) if end < 0 else end + 2
        return " " if self._at > start else ""

    def _name(self) -> str:
        """Reads a word without quotes.

        Adds quotes if it is a key. A value like `true` gets none.
        """
        self._count()
        name = self._take(_NAME)
        space = self._take(_SPACE)
        is_key = self._text.startswith(":", self._at)
        return f'"{name}"{space}' if is_key else name + space

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, f"{pattern.pattern} does not fit at {self._at}"
        self._at = found.end()
        return found[0]
