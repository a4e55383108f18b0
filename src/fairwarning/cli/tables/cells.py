"""Makes the cells that several tables use: times, phases, and short names of scopes."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from fairwarning.cli.table_model import Cell
from fairwarning.cli.times import absolute, from_wire, relative

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


def when(text: str | None, now: datetime) -> Cell:
    """Return the time in absolute and relative form. The cell is empty if there is no time."""
    if not text:
        return Cell("")
    instant = from_wire(text)
    return Cell(f"{absolute(instant)}, {relative(instant, now)}")


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
