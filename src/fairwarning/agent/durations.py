"""`30s`, `15m`, `1h30m` or ISO 8601 as seconds. Pure."""

import re

_SHORT = re.compile(r"(?=.)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)
_ISO = re.compile(
    r"P(?=.)(?:(\d{1,6})D)?(?:T(?=.)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?", re.ASCII
)
_UNITS_S = (86_400, 3_600, 60, 1)


def parse_duration_s(text: str) -> float | None:
    """None if it is no duration."""
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None:
        return None
    return float(sum(int(n or 0) * unit for n, unit in zip(found.groups(), _UNITS_S, strict=True)))


def human_s(seconds: float) -> str:
    """`14 min`, `1 h 5 min`, `7 s`."""
    rest = max(0, int(seconds))
    parts = []
    for unit, name in zip(_UNITS_S, ("d", "h", "min", "s"), strict=True):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"
