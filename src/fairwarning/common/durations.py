"""This module parses and formats the durations of all files, flags and APIs. It has no I/O.

A duration has a short form in lower case (`30s`, `15m`, `2h`, `1d`, or several units from the
largest to the smallest, `1h30m`) and the ISO 8601 form in upper case (`PT15M`). Years, months and
weeks are not supported, because years and months have no fixed length.
"""

import re

DURATION_EXAMPLES = "30s, 15m, 2h, 1h30m or PT15M"
"""Examples of durations, for error messages."""

_COUNT = "[0-9]{1,6}"
_SHORT = rf"(?=[0-9])(?:({_COUNT})d)?(?:({_COUNT})h)?(?:({_COUNT})m)?(?:({_COUNT})s)?"
_ISO = (
    rf"P(?=[0-9T])(?:({_COUNT})D)?"
    rf"(?:T(?=[0-9])(?:({_COUNT})H)?(?:({_COUNT})M)?(?:({_COUNT})S)?)?"
)
# `$` also matches before a last newline. `\Z` is not in JavaScript, whose patterns OpenAPI uses.
DURATION_PATTERN = rf"^(?:{_SHORT}|{_ISO})$(?!\n)"
"""A pattern that matches exactly the durations. It means the same in Python and in OpenAPI."""

_ANY = re.compile(DURATION_PATTERN)
_ISO_ONLY = re.compile(_ISO)
_UNITS_S = (86_400, 3_600, 60, 1)
_UNIT_NAMES = ("d", "h", "min", "s")


def parse_duration_ms(text: str) -> int | None:
    """Return the duration in milliseconds, or None if the text is not a duration."""
    found = _ANY.match(text)
    if found is None:
        return None
    counts = found.groups(default="0")
    return _total_ms(counts[:4]) + _total_ms(counts[4:])


def parse_iso_duration_ms(text: str) -> int | None:
    """Return the duration in milliseconds, or None if the text is not an ISO 8601 duration."""
    found = _ISO_ONLY.fullmatch(text)
    return None if found is None else _total_ms(found.groups(default="0"))


def parse_duration_s(text: str) -> float | None:
    """Return the duration in seconds, or None if the text is not a duration."""
    found = parse_duration_ms(text)
    return None if found is None else found / 1000


def format_iso_duration(duration_ms: int) -> str:
    """Return the duration like `PT1H5M`, rounded up to whole seconds."""
    seconds = -(-duration_ms // 1000)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    text = "".join(
        f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if count
    )
    return f"PT{text or '0S'}"


def human_ms(duration_ms: int) -> str:
    """Return the exact duration in words, like `15 min 11 s`. Below a second it is in ms."""
    if 0 < duration_ms < 1000:
        return f"{duration_ms} ms"
    return " ".join(_in_units(duration_ms // 1000)) or "0 s"


def human_s(seconds: float) -> str:
    """Return the duration in its two largest units, like `14 min`, `1 h 5 min` or `7 s`."""
    return " ".join(_in_units(max(0, int(seconds)))[:2]) or "0 s"


def _in_units(seconds: int) -> list[str]:
    parts = []
    for unit, name in zip(_UNITS_S, _UNIT_NAMES, strict=True):
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count} {name}")
    return parts


def _total_ms(counts: tuple[str, ...]) -> int:
    pairs = zip(counts, _UNITS_S, strict=True)
    return sum(int(count) * unit * 1000 for count, unit in pairs)
