"""Durations are parsed and written here, for every file, flag and API. Pure.

A duration is written `30s`, `15m`, `2h`, `1d`, units together from the largest (`1h30m`), or in
ISO 8601 (`PT15M`). Lower case is the short form, upper case ISO 8601. Years, months and weeks are
left out: the first two have no fixed length.
"""

import re

DURATION_EXAMPLES = "30s, 15m, 2h, 1h30m or PT15M"
"""What an error message suggests."""

_COUNT = "[0-9]{1,6}"
_SHORT = rf"(?=[0-9])(?:({_COUNT})d)?(?:({_COUNT})h)?(?:({_COUNT})m)?(?:({_COUNT})s)?"
_ISO = (
    rf"P(?=[0-9T])(?:({_COUNT})D)?"
    rf"(?:T(?=[0-9])(?:({_COUNT})H)?(?:({_COUNT})M)?(?:({_COUNT})S)?)?"
)
# `$` alone fits before a last newline too, and JavaScript, whose patterns OpenAPI uses, has no \Z.
DURATION_PATTERN = rf"^(?:{_SHORT}|{_ISO})$(?!\n)"
"""Every duration and nothing else, as a pattern that means the same in Python and in OpenAPI."""

_ANY = re.compile(DURATION_PATTERN)
_ISO_ONLY = re.compile(_ISO)
_UNITS_S = (86_400, 3_600, 60, 1)
_UNIT_NAMES = ("d", "h", "min", "s")


def parse_duration_ms(text: str) -> int | None:
    """The duration in milliseconds, or None if the text is no duration."""
    found = _ANY.match(text)
    if found is None:
        return None
    counts = found.groups(default="0")
    return _total_ms(counts[:4]) + _total_ms(counts[4:])


def parse_iso_duration_ms(text: str) -> int | None:
    """The same for interfaces that take ISO 8601 only, as Azure's do."""
    found = _ISO_ONLY.fullmatch(text)
    return None if found is None else _total_ms(found.groups(default="0"))


def parse_duration_s(text: str) -> float | None:
    """The duration in seconds, or None if the text is no duration."""
    found = parse_duration_ms(text)
    return None if found is None else found / 1000


def format_iso_duration(duration_ms: int) -> str:
    """The shortest `PT…` form, in whole seconds; rounded up, so that no promise shrinks."""
    seconds = -(-duration_ms // 1000)
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    text = "".join(
        f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if count
    )
    return f"PT{text or '0S'}"


def human_s(seconds: float) -> str:
    """The two largest units that people read: `14 min`, `1 h 5 min`, `7 s`."""
    rest = max(0, int(seconds))
    parts = []
    for unit, name in zip(_UNITS_S, _UNIT_NAMES, strict=True):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def _total_ms(counts: tuple[str, ...]) -> int:
    pairs = zip(counts, _UNITS_S, strict=True)
    return sum(int(count) * unit * 1000 for count, unit in pairs)
