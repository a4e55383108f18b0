"""This module parses the text of all TOML files. For invalid text it raises NotToml with the line.

Text that would take the parser too much time or memory is refused before parsing.
"""

import re
import tomllib
from typing import Any

_SYNTAX = re.compile(r"(?P<what>.*?)(?: \(at (?:line (?P<line>\d+), .*|end of document)\))?")
_HINT = "a line is `key = value`, `[table]` or `[[array of tables]]`, and strings are quoted"


class NotToml(ValueError):
    """The text is not TOML. `message` says what is wrong and what to do; `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


def parse_toml(text: str, size_factor: int = 1) -> tuple[str, dict[str, Any]]:
    """Return the text with plain line ends, and its parsed tables. Raises NotToml if invalid.

    It may have `size_factor` times as many keys and values as a usual file, for a caller that
    limits the time and memory of its process.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    _refuse_costly(text, KEYS_MAX * size_factor, VALUES_MAX * size_factor)
    try:
        return text, tomllib.loads(text)
    except ValueError as error:
        raise _syntax_problem(text, str(error)) from None


def _syntax_problem(text: str, error: str) -> NotToml:
    match = _SYNTAX.fullmatch(error)
    what, line = (match["what"], match["line"]) if match else (error, None)
    number = int(line) if line else text.count("\n") + 1
    return NotToml(f"this is not TOML: {what}; {_HINT}", number)


KEY_PARTS_MAX = 20  # Far more than our files need.
NESTING_MAX = 20  # The parser recurses, and our files nest only a few levels.
KEYS_MAX = 200_000  # More would keep the parser busy for long, as would more values.
VALUES_MAX = 600_000  # A value costs the parser less than a key.
WORD_CHARS_MAX = 1_000
"""The longest name without quotes, number or time, including the spaces around it."""
_LONG_WORD = f"a name or a number has at most {WORD_CHARS_MAX:,} letters"
_MARK = re.compile(r"[\"'#.=,\[\]{}\n]")
# Each repetition of a group takes memory until the match ends, so a match has at most a thousand
# repetitions, and the caller matches again. Nothing follows the group, so there is no backtracking.
_BASIC = re.compile(r'(?:[^"\\\n]+|\\.){0,1000}')
_LONG_BASIC = re.compile(r'(?:[^"\\]+|\\.|"(?!"")){0,1000}', re.DOTALL)


def _refuse_costly(text: str, keys_max: int, values_max: int) -> None:
    """Raise NotToml if the text would take the parser too much time or memory."""
    at = keys = values = parts = depth = 0
    while (found := _MARK.search(text, at)) is not None:
        start, mark = found.start(), found[0]
        if start - at > WORD_CHARS_MAX:
            raise _too_costly(text, at, _LONG_WORD)
        at = start + 1
        match mark:
            case '"' | "'":
                end = end_of_string(text, start)
                if end is None:
                    return
                at = end
                continue
            case "#":
                at = text.find("\n", start)
                if at < 0:
                    return
                continue
            case ".":
                parts += 1
                if parts >= KEY_PARTS_MAX:
                    raise _too_costly(text, start, f"a key has at most {KEY_PARTS_MAX} parts")
                continue
            case "[" | "{":
                depth += 1
                values += 1
                if depth > NESTING_MAX:
                    raise _too_costly(text, start, f"values nest at most {NESTING_MAX} levels deep")
            case "]" | "}":
                depth -= 1
            case ",":
                values += 1
            case "=":
                keys += 1
            case _:
                pass
        parts = 0
        if keys > keys_max or values > values_max:
            raise _too_costly(text, start, f"there are at most {keys_max:,} keys and "
                              f"{values_max:,} values; divide the file")  # fmt: skip
    if len(text) - at > WORD_CHARS_MAX:
        raise _too_costly(text, at, _LONG_WORD)


def end_of_string(text: str, at: int) -> int | None:
    """Return the position behind the string that begins at `at`, or None if it does not end."""
    quote = text[at]
    is_long = text.startswith(quote * 3, at)
    if quote == "'" and not is_long:
        return _end_of_literal(text, at)
    if quote == "'":
        return _end_of_long(text, text.find("'''", at + 3), quote)
    inside, at = (_LONG_BASIC, at + 3) if is_long else (_BASIC, at + 1)
    while (found := inside.match(text, at)) is not None and found.end() > at:
        at = found.end()
    if is_long:
        return _end_of_long(text, at if text.startswith('"""', at) else -1, quote)
    return at + 1 if text.startswith('"', at) else None


def _end_of_literal(text: str, at: int) -> int | None:
    end = text.find("'", at + 1)
    return None if end < 0 or text.find("\n", at, end) >= 0 else end + 1


def _end_of_long(text: str, close: int, quote: str) -> int | None:
    """Return the position behind the closing quotes at `close`, or None if `close` is negative. Up
    to two more quotes may come before the closing three. They belong to the string.
    """
    if close < 0:
        return None
    end = close + 3
    while end < close + 5 and text.startswith(quote, end):
        end += 1
    return end


def _too_costly(text: str, at: int, message: str) -> NotToml:
    return NotToml(message, text.count("\n", 0, at) + 1)
