"""Reads a table of a scenario file, on top of the common reader of TOML tables."""

import difflib
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, Self, TypeVar

from fairwarning.common.durations import parse_duration_ms
from fairwarning.common.toml_lines import Path
from fairwarning.common.toml_table import TomlTable, suggestion

E = TypeVar("E", bound=StrEnum)


class ScenarioTable(TomlTable):
    """A table with a fixed set of keys. Some keys have a meaning only in some steps."""

    keys: Collection[str] = ()

    def __init__(self, raw: dict[str, Any], path: Path, mistakes: list[tuple[Path, str]]) -> None:
        super().__init__(raw, path, mistakes)
        self._missing: dict[str, str] = {}
        """The message for each missing key."""

    def inner(self, key: str, keys: Collection[str]) -> Self | None:
        """Return the table at `key`, which may have `keys`. It is None if there is no table."""
        found = self.table(key)
        if found is not None:
            found.keys = keys
        return found

    def has(self, key: str) -> bool:
        self._asked.append(key)
        return key in self.raw

    def value(self, key: str) -> Any:
        """Return the value unchecked. It is None if the key is missing."""
        self._asked.append(key)
        return self.raw.get(key)

    def needed(self, key: str) -> str:
        """Return the text at `key`. If it is missing or no text, note a mistake and return ""."""
        if not self.has(key):
            self._missing[key] = f"`{key}` is missing; add it"
            return ""
        return self.text(key)

    def choice(self, key: str, kind: type[E], among: Iterable[E] = ()) -> E | None:
        """Return the enum member that the text at `key` names, without regard to case.

        It is None, and a mistake is noted, if the text names none.
        """
        text, known = self.needed(key), tuple(among) or tuple(kind)
        for each in known:
            if each.lower() == text.lower():
                return each
        if isinstance(self.raw.get(key), str):
            self.wrong(key, f"`{text}` is no {key}; {suggestion(text, known)}")
        return None

    def duration_ms(self, key: str) -> int | None:
        value = self.value(key)
        found = parse_duration_ms(value) if isinstance(value, str) else None
        if value is not None and found is None:
            self.wrong(key, f'`{key}` must be a duration like "30s", "15m" or "PT15M"')
        return found

    def names(self, key: str, *, needed: bool = False) -> tuple[str, ...]:
        """Return the names at `key`, which holds one name or a list."""
        value = self.value(key)
        given = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) and each for each in given):
            self.wrong(key, f"`{key}` has a name that is no string")
            return ()
        if needed and not given:
            self._missing[key] = f"`{key}` must name at least one"
        return tuple(given)

    def close(self) -> None:
        """Report missing keys, unknown keys, and keys that have no meaning here.

        A missing key is not reported if an unknown key looks like a misspelling of it.
        """
        slips: set[str] = set()
        for key in self.raw:
            if key in self._asked:
                continue
            if key in self.keys:
                self.wrong(key, f"`{key}` means nothing here; leave it out")
                continue
            self.wrong(key, f"unknown key `{key}`; {suggestion(key, self.keys)}")
            slips.update(difflib.get_close_matches(key, self.keys, n=1))
        for key, message in self._missing.items():
            if key not in slips:
                self.wrong(key if key in self.raw else None, message)
