"""Which settings each driver knows, so that a fleet file with a slip is refused when it is read."""

import re
import shlex
from collections.abc import Mapping
from urllib.parse import urlsplit

from fairwarning.common.durations import parse_duration_ms

DRIVER_SETTINGS: Mapping[str, frozenset[str]] = {
    "simulated": frozenset(),
    "command": frozenset({"run", "timeout"}),
    "webhook": frozenset({"url", "secret_env"}),
}
REQUIRED_SETTINGS: Mapping[str, frozenset[str]] = {
    "simulated": frozenset(),
    "command": frozenset({"run"}),
    "webhook": frozenset({"url"}),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def driver_problem(driver: str, settings: Mapping[str, str]) -> str | None:
    """What is wrong with them and what to do, or None. Never repeats a value: it may be secret."""
    known = DRIVER_SETTINGS.get(driver)
    if known is None:
        return f"no driver is called {driver!r}; use one of {', '.join(DRIVER_SETTINGS)}"
    for name in sorted(settings.keys() - known):
        use = f"it knows {', '.join(sorted(known))}" if known else "it has none"
        return f"driver {driver!r} has no setting {name!r}; {use}"
    for name in sorted(REQUIRED_SETTINGS[driver] - settings.keys()):
        return f"driver {driver!r} needs {name!r}; add it"
    problems = (_value_problem(name, value) for name, value in settings.items())
    return next((f"driver {driver!r}: {each}" for each in problems if each), None)


def split_command(run: str) -> list[str] | None:
    """The words of a command line as a shell would split it, or None if there are none."""
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


def _value_problem(name: str, value: str) -> str | None:
    match name:
        case "run" if split_command(value) is None:
            return "'run' is no command line; give a program and its arguments, quotes closed"
        case "timeout" if not parse_duration_ms(value):
            return "'timeout' is no duration; write it like 30s, 10m or PT10M"
        case "url" if not is_http_url(value):
            return "'url' is no address; give one that begins with http:// or https://"
        case "secret_env" if not _VARIABLE.fullmatch(value):
            return "'secret_env' is the name of an environment variable; give a name"
        case _:
            return None
