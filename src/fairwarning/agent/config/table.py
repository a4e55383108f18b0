"""Reads config values that are more than plain TOML values, such as commands and templates."""

import difflib
from enum import StrEnum
from typing import TypeVar

from fairwarning.agent.config.model import Span
from fairwarning.agent.templates import NAMES, known_names, unknown_names
from fairwarning.common.durations import DURATION_EXAMPLES, parse_duration_s
from fairwarning.common.toml_table import BadFile, TomlTable, suggestion

E = TypeVar("E", bound=StrEnum)


class BadConfig(BadFile):
    """The agent's config has mistakes and cannot be used."""


class ConfigTable(TomlTable):
    """A table of the agent's config. It can read kinds of values that only the agent has."""

    def template(self, key: str, default: str = "", *, needed: bool = False) -> str:
        value = self.text(key, default, needed=needed)
        self.check_templates(key, value)
        return value

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

    def command(self, key: str) -> tuple[tuple[str, ...], bool] | None:
        """Return the argv and whether it runs a shell, or None if there is no valid command."""
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
