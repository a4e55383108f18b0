"""A table of the file that is read key by key. Mistakes are gathered, not raised one by one."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from fairwarning.agent.model import Span
from fairwarning.agent.templates import NAMES, known_names, unknown_names
from fairwarning.common.durations import DURATION_EXAMPLES, parse_duration_s
from fairwarning.common.toml_lines import Path

E = TypeVar("E", bound=StrEnum)
_WORDS = {
    str: "a string", int: "a whole number", float: "a number", bool: "true or false",
    list: "a list", dict: "a table",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class BadConfig(Exception):
    """The file cannot be used; `mistakes` says all that is wrong with it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = sorted(mistakes, key=lambda each: each.line)
        super().__init__("; ".join(str(each) for each in self.mistakes))


def suggestion(word: str, known: Iterable[str]) -> str:
    known = tuple(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"it may be {', '.join(known)}"


class Table:
    """Each key may be asked for once; `close` then tells which keys nobody asked for."""

    def __init__(self, raw: dict[str, Any], path: Path, mistakes: list[tuple[Path, str]]) -> None:
        self.raw = raw
        self.path = path
        self._mistakes = mistakes
        self._known: list[str] = []

    def wrong(self, key: str | int | None, message: str) -> None:
        self._mistakes.append((self.path if key is None else (*self.path, key), message))

    def close(self) -> None:
        for key in self.raw:
            if key not in self._known:
                self.wrong(key, f"unknown key `{key}`; {suggestion(key, self._known)}")

    def take(self, key: str, *types: type) -> Any:
        """The value, or None if it is missing or of another type."""
        self._known.append(key)
        value = self.raw.get(key)
        if value is None or type(value) in types:
            return value
        wanted = " or ".join(_WORDS[each] for each in types)
        got = _WORDS.get(type(value), "a date")
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

    def template(self, key: str, default: str = "", *, needed: bool = False) -> str:
        value = self.text(key, default, needed=needed)
        self.check_templates(key, value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key, list)
        if value is None:
            return ()
        for each in value:
            if not isinstance(each, str) or not each:
                self.wrong(key, f"`{key}` must be a list of strings that are not empty")
                return ()
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
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

    def duration(self, key: str, default: float | None, *, least_s: float = 0) -> float | None:
        value = self.take(key, str)
        if value is None:
            return default
        found = parse_duration_s(value)
        if found is None:
            self.wrong(
                key, f"`{key}`: {value!r} is no duration; write one like {DURATION_EXAMPLES}"
            )
        elif found < least_s:
            self.wrong(key, f"`{key}` must be at least {least_s:g}s")
        else:
            return found
        return default

    def seconds(self, key: str, default: float, *, least_s: float = 0) -> float:
        found = self.duration(key, default, least_s=least_s)
        assert found is not None
        return found

    def choice(self, key: str, kind: type[E], default: E) -> E:
        value = self.take(key, str)
        if value is None:
            return default
        try:
            return kind(value)
        except ValueError:
            self.wrong(key, f"`{key}`: {value!r} is unknown; {suggestion(value, kind)}")
            return default

    def span(self, key: str) -> Span | None:
        table = self.table(key)
        if table is None:
            return None
        found = Span(min_s=table.duration("min", None), max_s=table.duration("max", None))
        table.close()
        if found.min_s is None and found.max_s is None:
            self.wrong(key, f"`{key}` needs `min`, `max` or both, such as {{ max = '5m' }}")
        elif found.min_s is not None and found.max_s is not None and found.min_s > found.max_s:
            self.wrong(key, f"`{key}`: `min` is more than `max`; nothing fits that")
        return found

    def strings(self, key: str) -> dict[str, str]:
        value = self.take(key, dict)
        if value is None:
            return {}
        if not all(isinstance(each, str) for each in value.values()):
            self.wrong(key, f"`{key}` must be a table of strings")
            return {}
        return dict(value)

    def table(self, key: str) -> "Table | None":
        value = self.take(key, dict)
        return None if value is None else Table(value, (*self.path, key), self._mistakes)

    def tables(self, key: str) -> list["Table"]:
        value = self.take(key, list)
        found = []
        for number, each in enumerate(value or ()):
            if isinstance(each, dict):
                found.append(Table(each, (*self.path, key, number), self._mistakes))
            else:
                self.wrong(key, f"`{key}` must be a list of tables")
        return found

    def command(self, key: str) -> tuple[tuple[str, ...], bool] | None:
        """The argv, and whether it is the shell's; None if there is none."""
        value = self.take(key, str, list)
        if isinstance(value, str) and value.strip():
            names = known_names(value)
            if names:
                variable = "$FAIRWARNING_" + names[0].upper().replace(".", "_")
                self.wrong(key, f"no templates in a shell command, for what an event says must "
                                f"not be read as shell; write \"{variable}\" in place of "
                                f"`{{{names[0]}}}`")  # fmt: skip
            return ("/bin/sh", "-c", value), True
        is_list = isinstance(value, list) and bool(value)
        if is_list and all(isinstance(each, str) for each in value) and value[0]:
            for each in value:
                self.check_templates(key, each)
            return tuple(value), False
        if value is not None:
            self.wrong(key, f"`{key}` must be a command: a string for the shell, or a list such "
                            "as ['/usr/bin/drain', '--now']")  # fmt: skip
        return None

    def check_templates(self, key: str, text: str) -> None:
        for name in unknown_names(text):
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean `{{{near[0]}}}`?" if near else (
                "see docs/agent.md for those there are; if the braces mean themselves, put a "
                "space after the first")  # fmt: skip
            self.wrong(key, f"`{{{name}}}` is unknown; {hint}")
