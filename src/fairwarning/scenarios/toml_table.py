"""A table of a scenario file: values of the right kind, and no key that nobody asked for."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, TypeVar

from fairwarning.fleet_file.problems import Misplaced, Path, suggestion
from fairwarning.fleet_file.values import duration_ms

E = TypeVar("E", bound=StrEnum)


class Table:
    """Every mistake is `Misplaced`, with the path of the key."""

    def __init__(self, raw: object, path: Path, keys: Collection[str]) -> None:
        """`keys` are all that there are. A slip in one is told first: what else is wrong, such as
        a key that is missing, mostly comes of it."""
        if not isinstance(raw, dict):
            raise Misplaced(path, f"`{path[-1]}` must be a table, as in {{ key = value }}")
        self.path = path
        self._raw: dict[str, Any] = raw
        self._asked: list[str] = []
        for key in raw:
            if key not in keys:
                raise Misplaced(self.at(key), f"unknown key `{key}`; {suggestion(key, keys)}")

    def has(self, key: str) -> bool:
        self._asked.append(key)
        return key in self._raw

    def raw(self, key: str) -> Any:
        self._asked.append(key)
        return self._raw.get(key)

    def at(self, key: str) -> Path:
        return (*self.path, key)

    def text(self, key: str, default: str = "") -> str:
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise Misplaced(self.at(key), f"`{key}` must be a string; put it in quotes")
        return value

    def needed(self, key: str) -> str:
        if not self.has(key):
            raise Misplaced(self.path, f"`{key}` is missing; add it")
        return self.text(key)

    def choice(self, key: str, kind: type[E], among: Iterable[E] = ()) -> E:
        """Whatever its case: `reboot` is `Reboot`."""
        text, known = self.needed(key), tuple(among) or tuple(kind)
        for each in known:
            if each.lower() == text.lower():
                return each
        raise Misplaced(self.at(key), f"`{text}` is no {key}; {suggestion(text, known)}")

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        if not isinstance(value, bool | None):
            raise Misplaced(self.at(key), f"`{key}` must be true or false")
        return bool(value)

    def span_ms(self, key: str) -> int | None:
        return None if self.raw(key) is None else duration_ms(self.raw(key), self.at(key))

    def names(self, key: str) -> tuple[str, ...]:
        """One name, or a list of them; each in quotes."""
        value = self.raw(key)
        given = [] if value is None else value if isinstance(value, list) else [value]
        for number, each in enumerate(given):
            if not isinstance(each, str) or not each:
                raise Misplaced((*self.at(key), number), f"`{key}` has a name that is no string")
        return tuple(given)

    def some_names(self, key: str) -> tuple[str, ...]:
        found = self.names(key)
        if not found:
            raise Misplaced(self.at(key), f"`{key}` must name at least one")
        return found

    def close(self) -> None:
        """What was not asked for has no place here."""
        for key in self._raw:
            if key not in self._asked:
                raise Misplaced(self.at(key), f"`{key}` means nothing here; leave it out")
