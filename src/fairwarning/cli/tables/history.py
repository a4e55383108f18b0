"""Makes a table of the history. A row says what happened, who did it, and why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.table_model import Cell, Column, Listing
from fairwarning.cli.tables.cells import short_ids, short_scopes, short_time, zone_note
from fairwarning.cli.times import absolute, from_wire
from fairwarning.common.escape import one_line

Json = dict[str, Any]

KIND_STYLES = {
    "Scheduled": "yellow",
    "Approved": "cyan",
    "Started": "magenta",
    "Completed": "green",
    "Failed": "red",
    "AttemptFailed": "red",
    "Cancelled": "dim",
}
_COLUMNS = (
    Column("AT", whole=True),
    Column("EVENT", whole=True),
    Column("WHAT", wraps=True),
    Column("BY"),
    Column("SCOPE"),
)


def history_table(entries: Sequence[Json], now: datetime) -> Listing:
    names = short_scopes(entry["scope"] for entry in entries)
    ids = short_ids(entry["event"] for entry in entries if entry.get("event"))
    rows = tuple(
        (
            short_time(entry["at"], now),
            Cell(ids.get(entry.get("event") or "", "")),
            Cell(f"{entry['text']}{_why(entry)}", KIND_STYLES.get(entry["kind"], "")),
            Cell(entry["by"]),
            Cell(names[entry["scope"]]),
        )
        for entry in entries
    )
    return Listing(
        columns=_COLUMNS, rows=rows, empty="Nothing has happened yet.", note=zone_note(now)
    )


def _why(entry: Json) -> str:
    return f" ({one_line(entry['why'])})" if entry.get("why") else ""


def entry_line(entry: Json) -> tuple[Cell, ...]:
    """Return an entry as a line, `2026-11-16 22:30:05 CET  text  by operator:eva (why)`."""
    return (
        Cell(f"{absolute(from_wire(entry['at']))}  ", "dim"),
        Cell(one_line(entry["text"]), KIND_STYLES.get(entry["kind"], "")),
        Cell(f"  by {one_line(entry['by'])}{_why(entry)}", "dim"),
    )
