"""These types describe the settings of a driver, so that mistakes are found when a fleet is read.

The core knows the kinds of values but no driver. Each driver declares its settings beside its code
(`drivers/` or a plug-in), and `boot.py` passes them to the code that reads fleets.
"""

import re
import shlex
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from fairwarning.common.durations import DURATION_EXAMPLES, parse_duration_ms

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class SettingKind(StrEnum):
    COMMAND_LINE = "command line"
    DURATION = "duration"
    TEXT = "text"
    URL = "URL"
    VARIABLE = "environment variable"


class Setting(Struct, frozen=True, kw_only=True):
    """One setting of a driver. All of it is plain data, because another process may check it."""

    name: str
    kind: SettingKind = SettingKind.TEXT
    is_required: bool = False
    pattern: str = ""
    """A regular expression that a text must match as a whole. Empty means any text."""
    example: str = ""
    """A value that matches the pattern. It is shown when another value does not."""


class DriverSettings(Struct, frozen=True, kw_only=True):
    driver: str
    """The name of the driver in a fleet file."""
    settings: tuple[Setting, ...] = ()
    unusable: str = ""
    """Why no fleet can use the driver, and what to do: it cannot be loaded, or lacks a package."""

    def problem(self, given: Mapping[str, str]) -> str | None:
        """Return what is wrong with these settings, or None. The text contains no secret value."""
        if self.unusable:
            return f"driver {self.driver!r} cannot be used: {self.unusable}"
        known = {each.name: each for each in self.settings}
        for name in sorted(given.keys() - known.keys()):
            use = f"it knows {', '.join(sorted(known))}" if known else "it has none"
            return f"driver {self.driver!r} has no setting {name!r}; {use}"
        for each in self.settings:
            if each.is_required and each.name not in given:
                return f"driver {self.driver!r} needs {each.name!r}; add it"
        problems = (_value_problem(known[name], value) for name, value in given.items())
        return next((f"driver {self.driver!r}: {each}" for each in problems if each), None)


DriverCatalogue = Mapping[str, DriverSettings]
"""The settings of all drivers, by the name of the driver."""


def driver_problem(
    drivers: DriverCatalogue, driver: str, settings: Mapping[str, str]
) -> str | None:
    """Return what is wrong with the driver or its settings and what to do, or None."""
    if driver not in drivers:
        return f"no driver is called {driver!r}; use one of {', '.join(drivers)}"
    return drivers[driver].problem(settings)


def split_command(run: str) -> list[str] | None:
    """Return the words of a command line, or None if there are none or a quote is not closed."""
    try:
        return shlex.split(run) or None
    except ValueError:
        return None


def is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _value_problem(setting: Setting, value: str) -> str | None:
    name = repr(setting.name)
    match setting.kind:
        case SettingKind.COMMAND_LINE if split_command(value) is None:
            return f"{name} is no command line; give a program and its arguments, quotes closed"
        case SettingKind.DURATION if not parse_duration_ms(value):
            return f"{name} is no duration; write one like {DURATION_EXAMPLES}"
        case SettingKind.TEXT if setting.pattern and not re.fullmatch(setting.pattern, value):
            return f"{name} is not written as it must be; write it like {setting.example!r}"
        case SettingKind.URL if not is_http_url(value):
            return f"{name} is no address; give one that begins with http:// or https://"
        case SettingKind.VARIABLE if not _VARIABLE.fullmatch(value):
            return f"{name} is the name of an environment variable; give a name"
        case _:
            return None
