"""This module reads a TOML table key by key, and collects all mistakes of a file with their lines.

A reader asks the table for each key that is allowed, and then closes the table. After a mistake
the reader gets a default value and goes on. At the end it raises all mistakes (`with_lines`).
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from fairwarning.common.toml_lines import Lines, Path

_TYPE_WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "a table",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    line: int | None
    """The line in the file, counted from 1. None if the mistake belongs to no line."""
    message: str
    """What is wrong, and what to do."""

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


class BadFile(Exception):
    """A file has mistakes. `mistakes` lists all of them, in the order of their lines."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = sorted(mistakes, key=lambda each: each.line or 0)
        super().__init__("; ".join(str(each) for each in self.mistakes))


class TomlTable:
    """One table of a file. `close` reports the keys that the reader has not asked for."""

    def __init__(self, raw: dict[str, Any], path: Path, mistakes: list[tuple[Path, str]]) -> None:
        """Create the table at `path`. All tables of a file share one list of `mistakes`."""
        self.raw = raw
        self.path = path
        self.mistakes = mistakes
        self._asked: list[str] = []

    def wrong(self, key: str | int | None, message: str) -> None:
        """Note a mistake at `key`, or at the table itself if `key` is None."""
        self.mistakes.append((self.path if key is None else (*self.path, key), message))

    def close(self) -> None:
        for key in self.raw:
            if key not in self._asked:
                self.wrong(key, f"unknown key `{key}`; {suggestion(key, self._asked)}")

    def take(self, key: str, *types: type) -> Any:
        """Return the value. It is None if the key is missing or the type is wrong (a mistake)."""
        self._asked.append(key)
        value = self.raw.get(key)
        # type() and not isinstance(), because isinstance(True, int) is true.
        if value is None or type(value) in types:
            return value
        wanted = " or ".join(_TYPE_WORDS[each] for each in types)
        got = _TYPE_WORDS.get(type(value), "a date")
        self.wrong(key, f"`{key}` must be {wanted}, not {got}")
        return None

    def text(self, key: str, default: str = "", *, needed: bool = False) -> str:
        value = self.take(key, str)
        if value is None:
            if needed and key not in self.raw:
                self.wrong(None, f"`{key}` is missing; add it")
            return default
        if needed and not value:
            self.wrong(key, f"`{key}` must not be empty")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key, list)
        if value is None:
            return ()
        for each in value:
            if not isinstance(each, str) or not each:
                self.wrong(key, f"`{key}` must be a list of strings that are not empty")
                return ()
        return tuple(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.take(key, bool)
        return default if value is None else bool(value)

    def whole(self, key: str, default: int, *, least: int, most: int) -> int:
        value = self.take(key, int)
        if value is None:
            return default
        if not least <= value <= most:
            self.wrong(key, f"`{key}` must be from {least} to {most}")
            return default
        return int(value)

    def strings(self, key: str) -> dict[str, str]:
        value = self.take(key, dict)
        if value is None:
            return {}
        if not all(isinstance(each, str) for each in value.values()):
            self.wrong(key, f"`{key}` must be a table of strings")
            return {}
        return dict(value)

    def table(self, key: str) -> Self | None:
        value = self.take(key, dict)
        return None if value is None else type(self)(value, (*self.path, key), self.mistakes)

    def tables(self, key: str) -> list[Self]:
        value = self.take(key, list)
        found = []
        for number, each in enumerate(value or ()):
            if isinstance(each, dict):
                found.append(type(self)(each, (*self.path, key, number), self.mistakes))
            else:
                self.wrong(key, f"`{key}` must be a list of tables")
        return found


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint with the known word that is similar to `word`, or else with all known words."""
    known = tuple(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"it may be {', '.join(known)}"


def with_lines(mistakes: Iterable[tuple[Path, str]], text: str) -> list[Mistake]:
    """Return the mistakes with the line of each in `text`."""
    lines = Lines(text)
    return [Mistake(line=lines.of(path), message=message) for path, message in mistakes]
