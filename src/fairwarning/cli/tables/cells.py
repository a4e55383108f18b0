"""Makes the cells that several tables use: times, phases, and short names of scopes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from fairwarning.cli.table_model import Cell
from fairwarning.cli.times import absolute, from_wire, relative

FINISHED = ("completed", "failed", "cancelled")
PHASE_STYLES = {
    "scheduled": "yellow",
    "announced": "yellow",
    "started": "magenta",
    "running": "magenta",
    "completed": "green",
    "paused": "cyan",
    "failed": "red",
    "cancelled": "dim",
    "skipped": "dim",
    "waiting": "dim",
}


ID_LENGTH_MIN = 8
"""So many characters of an event's id are shown in tables. By chance, no other event has them."""


def when(text: str | None, now: datetime, zone: tzinfo | None = None) -> Cell:
    """Return the time in absolute and relative form. The cell is empty if there is no time.

    `zone` None is the local zone.
    """
    if not text:
        return Cell("")
    instant = from_wire(text)
    return Cell(f"{absolute(instant, zone)}, {relative(instant, now)}")


def not_before(event: Mapping[str, Any], now: datetime) -> Cell:
    """Return NotBefore of an event. Once the event is over, "in 14 min" would mislead."""
    if event["phase"] in FINISHED and event["notBefore"]:
        return Cell(absolute(from_wire(event["notBefore"])))
    return when(event["notBefore"], now)


def short_not_before(event: Mapping[str, Any], now: datetime) -> Cell:
    """Return the same for a narrow column."""
    if event["phase"] in FINISHED:
        return short_time(event["notBefore"], now)
    return soon(event["notBefore"], now)


def short_time(text: str | None, now: datetime, zone: tzinfo | None = None) -> Cell:
    """Return the time for a narrow column: without the date if it is today, else without seconds.

    The zone stands elsewhere, so that it is not repeated in each row.
    """
    if not text:
        return Cell("")
    local, today = from_wire(text).astimezone(zone), now.astimezone(zone)
    if local.date() == today.date():
        return Cell(f"{local:%H:%M:%S}")
    return Cell(f"{local:%d %b %H:%M}" if local.year == today.year else f"{local:%Y-%m-%d %H:%M}")


def soon(text: str | None, now: datetime, zone: tzinfo | None = None) -> Cell:
    """Return the time for a narrow column, and how far away it is. `zone_note` says the zone."""
    if not text:
        return Cell("")
    return Cell(f"{short_time(text, now, zone).text}, {relative(from_wire(text), now)}")


def zone_note(now: datetime, zone: tzinfo | None = None) -> str:
    """Return the line below a table whose times do not name their zone."""
    return f"Times are in {getattr(zone, 'key', None) or now.astimezone(zone).tzname()}."


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each id that is enough to name it, as commands take it."""
    distinct = set(ids)
    length = ID_LENGTH_MIN
    while len({each[:length] for each in distinct}) < len(distinct):
        length += 1
    return {each: each[:length] for each in distinct}


def phase(name: str) -> Cell:
    return Cell(name, PHASE_STYLES.get(name, ""))


def short_scope(id: str) -> str:
    """Return a scope's id without subscription and group, such as `availability-set/web`."""
    parts = id.split("/")
    return "/".join(parts[2:]) if len(parts) > 3 else id


def short_scopes(ids: Iterable[str]) -> dict[str, str]:
    """Return a short name for each id. Scopes that would share one keep the whole id."""
    distinct = set(ids)
    counts = Counter(map(short_scope, distinct))
    return {id: short_scope(id) if counts[short_scope(id)] == 1 else id for id in distinct}
