"""Types of arguments: durations, numbers, and addresses written HOST:PORT."""

import math
from typing import Any

import click

from fairwarning.cli.times import NotATime, duration_text


class Number(click.FloatRange):
    """A number within limits. It refuses `nan`, which click would accept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is no number; write one like 0.5", param, ctx)
        return found


def duration(text: str) -> str:
    """Convert a duration such as 15m to ISO 8601. Raises `click.BadParameter` for other text."""
    try:
        return duration_text(text)
    except NotATime as error:
        raise click.BadParameter(str(error)) from None


EVENT_TYPES = ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]
EVENT_TYPE = click.Choice(EVENT_TYPES, case_sensitive=False)


def host_and_port(value: str) -> tuple[str, int]:
    """Split an address HOST:PORT. Raises `click.BadParameter` for any other text."""
    host, _, port = value.rpartition(":")
    if not _is_host(host) or not _is_port(port):
        raise click.BadParameter(f"{value!r} is no HOST:PORT; write one like 127.0.0.1:8169")
    return "127.0.0.1" if host == "localhost" else host.strip("[]"), int(port)


def _is_port(text: str) -> bool:
    # Python refuses to convert thousands of digits to a number.
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65_536


def _is_host(text: str) -> bool:
    try:
        text.encode("idna")  # As the resolver will, which refuses long names.
    except UnicodeError:
        return False
    return bool(text) and text.isprintable()
