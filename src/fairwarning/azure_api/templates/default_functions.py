"""Defines `utcNow` and `newGuid`, which only the defaults of parameters may use.

A template job that died is replaced by one that must compute the same values. So both depend only
on the time and the seed of the deployment.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count

from fairwarning.azure_api.templates.errors import TemplateError, shorten
from fairwarning.azure_api.templates.functions.signature import Function, takes
from fairwarning.azure_api.templates.values import Kind
from fairwarning.core.instants import Instant, to_datetime

NAMES = ("utcNow", "newGuid")
_DEFAULT = "yyyyMMddTHHmmssZ"
_STANDARD = {
    "d": "MM/dd/yyyy",
    "D": "dddd, dd MMMM yyyy",
    "g": "MM/dd/yyyy HH:mm",
    "G": "MM/dd/yyyy HH:mm:ss",
    "o": "yyyy-MM-ddTHH:mm:ss.fffffff'Z'",
    "O": "yyyy-MM-ddTHH:mm:ss.fffffff'Z'",
    "r": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "R": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
    "s": "yyyy-MM-ddTHH:mm:ss",
    "t": "HH:mm",
    "T": "HH:mm:ss",
    "u": "yyyy-MM-dd HH:mm:ss'Z'",
}
_PART = re.compile(r"'[^']*'|\"[^\"]*\"|\\.|%?([yMdHhmsftzK])\1*|.", re.DOTALL)
_PARTS: dict[str, Callable[[datetime], str]] = {
    "yyyy": lambda t: f"{t.year:04}",
    "yy": lambda t: f"{t.year % 100:02}",
    "MMMM": lambda t: f"{t:%B}",
    "MMM": lambda t: f"{t:%b}",
    "MM": lambda t: f"{t.month:02}",
    "M": lambda t: f"{t.month}",
    "dddd": lambda t: f"{t:%A}",
    "ddd": lambda t: f"{t:%a}",
    "dd": lambda t: f"{t.day:02}",
    "d": lambda t: f"{t.day}",
    "HH": lambda t: f"{t.hour:02}",
    "H": lambda t: f"{t.hour}",
    "hh": lambda t: f"{t.hour % 12 or 12:02}",
    "h": lambda t: f"{t.hour % 12 or 12}",
    "mm": lambda t: f"{t.minute:02}",
    "m": lambda t: f"{t.minute}",
    "ss": lambda t: f"{t.second:02}",
    "s": lambda t: f"{t.second}",
    "tt": lambda t: f"{t:%p}",
    "K": lambda _: "Z",
    "zzz": lambda _: "+00:00",
}


def default_functions(now: Instant, seed: str) -> dict[str, Function]:
    """Returns the functions for the defaults of parameters."""
    numbers = count()

    def new_guid() -> str:
        return str(uuid.uuid5(uuid.UUID(seed), str(next(numbers))))

    return {
        "utcnow": takes(lambda form=_DEFAULT: formatted(now, form), Kind.TEXT, least=0),
        "newguid": takes(new_guid),
    }


def misplaced_functions() -> dict[str, Function]:
    """Returns `utcNow` and `newGuid` for all other places, where they raise TemplateError."""
    return {name.lower(): takes(_misplaced(name), Kind.TEXT, least=0) for name in NAMES}


def _misplaced(name: str) -> Callable[..., str]:
    def refuse(_: str = "") -> str:
        raise TemplateError(
            f"the function '{name}' is not expected at this location; only the default value of a "
            "parameter may use it"
        )

    return refuse


def formatted(now: Instant, form: str) -> str:
    """Returns the time in a format of .NET. Raises TemplateError if the format is not known."""
    time = to_datetime(now)
    return "".join(_written(time, _STANDARD.get(form, form)))


def _written(time: datetime, form: str) -> Iterator[str]:
    for found in _PART.finditer(form):
        part = found[0]
        if part[0] in "'\"":
            yield part[1:-1]
        elif part[0] == "\\":
            yield part[1:]
        elif found[1] is None:
            yield part
        elif found[1] == "f" and len(part) <= 7:
            yield f"{time.microsecond:06}0"[: len(part)]
        elif part in _PARTS:
            yield _PARTS[part](time)
        else:
            raise TemplateError(f"the format '{shorten(form)}' of a date is not supported here")
