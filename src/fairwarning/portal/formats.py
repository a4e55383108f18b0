"""How values look on a page. Times are marked up: the browser writes them in the reader's zone."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from fairwarning.core.instants import MINUTE_MS, parse_iso_duration_ms
from fairwarning.portal.domains import state_of

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def when(text: str | None, kind: str = "both") -> Markup:
    """`kind`: `both`, `time`, `date`, `ago` (how long ago), `left` (counts down)."""
    if not text:
        return Markup('<span class="none">-</span>')
    at = datetime.fromisoformat(text).astimezone(UTC)
    plain = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup(
        '<time datetime="{iso}" title="{plain}" data-when="{kind}">{plain}</time>'
    ).format(iso=at.strftime("%Y-%m-%dT%H:%M:%SZ"), plain=plain, kind=kind)


def span(seconds: float | None) -> str:
    """`1 h 30 min`; at most two units, because nobody plans by more."""
    if seconds is None or seconds < 0:
        return "-"
    left, parts = round(seconds), []
    for size, unit in _UNITS:
        if left >= size:
            count, left = divmod(left, size)
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def short(id: str) -> str:
    """The first part of a GUID, enough to tell events apart on a page."""
    return id.partition("-")[0]


def named(scope_id: str) -> str:
    """`web` for `SUBSCRIPTION/GROUP/availability-set/web`."""
    return scope_id.split("/")[3] if scope_id.count("/") >= 3 else scope_id


def minutes(duration: str) -> int:
    """`PT10M` as 10."""
    return (parse_iso_duration_ms(duration) or 0) // MINUTE_MS


def duration(text: str) -> str:
    """`PT10M` as `10 min`."""
    return span((parse_iso_duration_ms(text) or 0) / 1000)


FILTERS: dict[str, Callable[..., Any]] = {
    "when": when,
    "span": span,
    "short": short,
    "named": named,
    "minutes": minutes,
    "duration": duration,
    "state": state_of,
}
