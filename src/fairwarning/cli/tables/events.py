"""Makes a table of events, and a card of one event with its timeline."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.table_model import Card, Cell, Column, Lines, Listing, Shown
from fairwarning.cli.tables.cells import (
    not_before,
    phase,
    short_ids,
    short_not_before,
    short_scopes,
    when,
    zone_note,
)
from fairwarning.cli.tables.history import entry_line
from fairwarning.cli.times import human_duration
from fairwarning.common.escape import several

Json = dict[str, Any]

_COLUMNS = (
    Column("ID", whole=True),
    Column("TYPE", whole=True),
    Column("INSTANCES", wraps=True),
    Column("PHASE", whole=True),
    Column("NOT BEFORE", whole=True),
    Column("SCOPE"),
)


def events_table(events: Sequence[Json], now: datetime, *, empty: str) -> Listing:
    names = short_scopes(event["scope"] for event in events)
    ids = short_ids(event["id"] for event in events)
    rows = tuple(
        (
            Cell(ids[event["id"]], "bold"),
            Cell(kind_of(event)),
            Cell(several(event["resources"])),
            phase(event["phase"]),
            short_not_before(event, now),
            Cell(names[event["scope"]]),
        )
        for event in events
    )
    return Listing(columns=_COLUMNS, rows=rows, empty=empty, note=zone_note(now))


def event_card(event: Json, now: datetime) -> Card:
    approvals = ", ".join(each["by"] for each in event.get("approvals") or ())
    return Card(
        title=Cell(f"{kind_of(event)} of {several(event['resources'], 20)}", "bold"),
        facts=(
            ("id", Cell(event["id"], "bold")),
            ("phase", phase(event["phase"])),
            ("not before", not_before(event, now)),
            ("waits", Cell(event.get("waits") or "")),
            ("scope", Cell(event["scope"])),
            ("update domain", Cell(_number(event.get("updateDomain")))),
            ("source", Cell(_source(event))),
            ("duration", Cell(_duration(event.get("durationSeconds")))),
            ("description", Cell(event.get("description") or "")),
            ("created", when(event.get("created"), now)),
            ("approved by", Cell(approvals)),
            ("started", _started(event, now)),
            ("ended", when(event.get("ended"), now)),
            ("outcome", Cell(event.get("outcome") or "")),
            ("replaced by", Cell(event.get("replacedBy") or "")),
        ),
    )


def event_page(event: Json, now: datetime) -> list[Shown]:
    timeline = Lines(lines=tuple(entry_line(each) for each in event.get("timeline") or ()))
    return [event_card(event, now), timeline]


def kind_of(event: Json) -> str:
    """Return the type of an event, or the operation if it is a change of power."""
    is_power = event["type"] == "Power" and event.get("operation")
    return str(event["operation"]).capitalize() if is_power else str(event["type"])


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _source(event: Json) -> str:
    asked = f", {event['operation']}" if event.get("operation") else ""
    unseen = "" if event.get("announced", True) else ", not announced"
    return f"{event['source']}{asked}{unseen}"


def _duration(seconds: int | None) -> str:
    """Return the duration in words. It is empty for None and for -1, which means unknown."""
    return "" if seconds is None or seconds < 0 else human_duration(seconds * 1000)


def _started(event: Json, now: datetime) -> Cell:
    at = when(event.get("started"), now)
    return Cell(f"{at.text}, {event['startCause']}") if event.get("startCause") else at
