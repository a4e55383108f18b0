"""This module finds the line of each value in a TOML text.

Theory of operation. The text has been parsed before, so it is valid TOML, and this module only
looks for the places where keys and values begin. It notes the line where each path, such as
`("vm", 2, "addresses", 0)`, first occurs. A path that is not in the text, such as a missing key,
has the line of the nearest path above it.
"""

import re
import tomllib
from bisect import bisect_right

from fairwarning.common.toml_text import end_of_string

Path = tuple[str | int, ...]
"""The keys and list positions that lead to a value, such as `("scale_set", 0, "capacity")`."""

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"(?:#[^\n]*)?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_QUOTES = "\"'"


class Lines:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[Path, int] = {(): 1}
        self._lengths: dict[Path, int] = {}
        """The number of tables in each array of tables, as far as the text has been read."""
        self._walk()

    def of(self, path: Path) -> int:
        """Return the line of the path, counted from 1."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def _walk(self) -> None:
        table: Path = ()
        self._skip_gap()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip_gap()

    def _header(self) -> Path:
        is_array = self._text.startswith("[[", self._at)
        brackets = 2 if is_array else 1
        line = self._line()
        self._at += brackets
        *above, last = self._keys()
        self._skip(_SPACE)
        self._at += brackets
        path: Path = ()
        for key in above:
            path = self._newest((*path, key), line)
        path = (*path, last)
        if is_array:
            self._lengths[path] = self._lengths.get(path, 0) + 1
        return self._newest(path, line)

    def _newest(self, path: Path, line: int) -> Path:
        """Note the path of a header. For an array of tables, return the path of the last table."""
        self._note(path, line)
        if path in self._lengths:
            path = (*path, self._lengths[path] - 1)
            self._note(path, line)
        return path

    def _pair(self, path: Path) -> None:
        line = self._line()
        for key in self._keys():
            path = (*path, key)
            self._note(path, line)
        self._skip(_SPACE)
        self._at += 1
        self._skip(_SPACE)
        self._value(path)

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            start, is_quoted = self._at, self._text[self._at] in _QUOTES
            if is_quoted:
                self._skip_string()
            else:
                self._skip(_BARE)
            key = self._text[start : self._at]
            keys.append(tomllib.loads(f"key = {key}")["key"] if is_quoted else key)
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _value(self, path: Path) -> None:
        match self._text[self._at]:
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._skip_string()
            case _:
                self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._goes_on("]"):
            self._note((*path, number), self._line())
            self._value((*path, number))
            number += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while self._goes_on("}"):
            self._pair(path)

    def _goes_on(self, end: str) -> bool:
        """Go to the next element and return True, or go behind the end and return False."""
        self._skip_gap()
        if self._text[self._at] == ",":
            self._at += 1
            self._skip_gap()
        if self._text[self._at] != end:
            return True
        self._at += 1
        return False

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        assert found is not None, f"{pattern.pattern} does not fit at {self._at}"
        self._at = found.end()

    def _skip_gap(self) -> None:
        before = -1
        while self._at > before:
            before = self._at
            self._skip(_BLANK)
            self._skip(_COMMENT)

    def _skip_string(self) -> None:
        end = end_of_string(self._text, self._at)
        assert end is not None, f"the string at {self._at} does not end"
        self._at = end

    def _line(self) -> int:
        return bisect_right(self._ends, self._at - 1) + 1

    def _note(self, path: Path, line: int) -> None:
        self._lines.setdefault(path, line)
