"""This module has the state of the live screen, and makes the lines that show it. It has no I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.cli.table_model import Cell
from fairwarning.cli.tables.cells import PHASE_STYLES, short_scopes
from fairwarning.cli.tables.events import kind_of
from fairwarning.cli.tables.history import entry_line
from fairwarning.cli.times import absolute, countdown, from_wire
from fairwarning.common.escape import several

Json = dict[str, Any]
ENTRIES_MAX = 50  # More lines than a usual terminal shows.
Line = tuple[Cell, ...]

STATES = {
    "running": ("■", "#", "green"),
    "scheduled": ("◆", "!", "yellow"),
    "started": ("▲", "*", "bold magenta"),
    "stopped": ("□", "-", "dim"),
    "deallocated": ("□", "-", "dim"),
}
"""The glyph of each state, its ASCII form, and its colour."""
_UNKNOWN = ("?", "?", "")
_ID_SHORT = 8  # The first part of a GUID, as people quote it.
_WIDE = 110
"""On screens of at least this width, events show their whole ids."""


class ScreenState(Struct, frozen=True, kw_only=True):
    scopes: tuple[Json, ...] = ()
    events: tuple[Json, ...] = ()
    """The unfinished events."""
    entries: tuple[Json, ...] = ()
    """The last transitions, the newest last."""
    lost: str = ""
    """Why there is no connection. It is empty while there is one."""


def with_entries(seen: ScreenState, entries: Sequence[Json]) -> ScreenState:
    """Add the entries that are new. After a reload, some come a second time."""
    known = {entry["position"] for entry in seen.entries}
    new = [entry for entry in entries if entry["position"] not in known]
    return replace(seen, entries=(*seen.entries, *new)[-ENTRIES_MAX:])


def with_scope(seen: ScreenState, id: str, scope: Json | None) -> ScreenState:
    """Replace or add the scope with this id, or remove it if `scope` is None."""
    others = [each for each in seen.scopes if each["id"] != id]
    scopes = others if scope is None else [*others, scope]
    return replace(seen, scopes=tuple(sorted(scopes, key=lambda each: str(each["id"]))))


def instance_states(scope: Json, events: Sequence[Json]) -> dict[str, str]:
    """Return the state of each instance by name: its event's phase, or else its power state."""
    states = {each["name"]: str(each["power"]) for each in scope["instances"]}
    for phase in ("scheduled", "started"):
        for event in events:
            if event["scope"] == scope["id"] and event["phase"] == phase:
                states |= {name: phase for name in event["resources"] if name in states}
    return states


def domains(scope: Json, events: Sequence[Json]) -> list[tuple[int, list[str]]]:
    """Return the update domains, each with its instances' states in the order of their names."""
    states = instance_states(scope, events)
    found: dict[int, list[str]] = {}
    for instance in sorted(scope["instances"], key=lambda each: str(each["name"])):
        found.setdefault(int(instance["updateDomain"]), []).append(states[instance["name"]])
    return sorted(found.items())


def by_urgency(seen: ScreenState) -> list[Json]:
    """Return the scopes. Those with a started event are first, then those with a scheduled one."""

    def rank(scope: Json) -> int:
        states = set(instance_states(scope, seen.events).values())
        return 0 if "started" in states else 1 if "scheduled" in states else 2

    return sorted(seen.scopes, key=rank)


def screen(
    seen: ScreenState, url: str, now: datetime, *, width: int, height: int, unicode: bool = True
) -> list[Line]:
    """Return the lines of the whole screen, at most `height`."""
    room = max(0, height - 5)
    events = _event_lines(seen.events, now, width)
    timeline = [entry_line(entry) for entry in reversed(seen.entries)]
    fleet = _fleet_lines(seen, width, unicode=unicode)
    events_room = min(len(events), max(1, room // 3))
    timeline_room = min(len(timeline), max(1, room // 4))
    fleet_room = max(0, room - events_room - timeline_room)
    lines = [
        _header(seen, url, now),
        (Cell(f"Fleet  {_legend(unicode=unicode)}", "bold"),),
        *_fitting(fleet, fleet_room, "line"),
        (Cell(f"Events ({len(seen.events)})", "bold"),),
        *_fitting(events, events_room, "event"),
        (Cell("Timeline", "bold"),),
        *timeline[:timeline_room],
    ]
    footer: Line = (Cell("q quits", "dim"),)
    return [*lines[: height - 1], footer]


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return a unique beginning for each id, at least 8 characters. Commands accept these."""
    length = _ID_SHORT
    while len({id[:length] for id in ids}) < len(set(ids)):
        length += 1
    return {id: id[:length] for id in ids}


def _header(seen: ScreenState, url: str, now: datetime) -> Line:
    state = Cell(f"connection lost, trying again: {seen.lost}", "bold red")
    return (
        Cell("Fairwarning ", "bold"),
        Cell(f"{url}  {absolute(now)}  "),
        state if seen.lost else Cell("connected", "green"),
    )


def _legend(*, unicode: bool) -> str:
    return "  ".join(
        f"{STATES[state][0 if unicode else 1]} {word}"
        for state, word in (
            ("running", "running"),
            ("scheduled", "announced"),
            ("started", "under way"),
            ("stopped", "stopped"),
        )
    )


def _fitting(lines: list[Line], room: int, noun: str) -> list[Line]:
    if len(lines) <= room:
        return lines
    hidden = len(lines) - max(0, room - 1)
    plural = "" if hidden == 1 else "s"
    return [*lines[: max(0, room - 1)], (Cell(f"  and {hidden} more {noun}{plural}", "dim"),)]


def _fleet_lines(seen: ScreenState, width: int, *, unicode: bool) -> list[Line]:
    if not seen.scopes:
        return [(Cell("  no scopes; declare some with `fairwarning fleet apply FILE`", "dim"),)]
    names = short_scopes(scope["id"] for scope in seen.scopes)
    name_width = min(max(map(len, names.values())), max(12, width // 3))
    return [
        line
        for scope in by_urgency(seen)
        for line in _scope_lines(scope, seen, names[scope["id"]], name_width, width, unicode)
    ]


def _scope_lines(
    scope: Json, seen: ScreenState, name: str, name_width: int, width: int, unicode: bool
) -> list[Line]:
    """Return the lines of a scope: its name, with the update domains beside it."""
    rows = _rows(domains(scope, seen.events), max(10, width - name_width - 4))
    label = name if len(name) <= name_width else f"…{name[-(name_width - 1) :]}"
    labels = [label, *[""] * (len(rows) - 1)]
    return [
        (Cell(f"  {text:<{name_width}}  "), *_glyphs(row, unicode=unicode))
        for text, row in zip(labels, rows, strict=True)
    ]


Piece = tuple[str, list[str]]
"""A label, and the instance states that are shown after it."""


def _rows(found: list[tuple[int, list[str]]], width: int) -> list[list[Piece]]:
    rows: list[list[Piece]] = [[]]
    left = width
    for number, states in found:
        label = f"{number} "
        for start in range(0, len(states), max(1, width - 4)):
            part = states[start : start + max(1, width - 4)]
            needed = len(label) + len(part) + 2
            if needed > left:
                rows.append([])
                left = width
            rows[-1].append((label, part))
            left -= needed
            label = "  "
    return rows


def _glyphs(row: list[Piece], *, unicode: bool) -> list[Cell]:
    cells = []
    for label, states in row:
        cells.append(Cell(label, "dim"))
        for state in states:
            glyph, plain, style = STATES.get(state, _UNKNOWN)
            cells.append(Cell(glyph if unicode else plain, style))
        cells.append(Cell("  "))
    return cells


def _event_lines(events: Sequence[Json], now: datetime, width: int) -> list[Line]:
    if not events:
        return [(Cell("  none", "dim"),)]
    ids = [str(event["id"]) for event in events]
    shown = {id: id for id in ids} if width >= _WIDE else short_ids(ids)
    ordered = sorted(events, key=lambda event: (event["phase"] != "started", event["notBefore"]))
    return [
        (
            Cell(f"  {shown[event['id']]}  ", "bold"),
            Cell(f"{event['phase']:<9}  ", PHASE_STYLES.get(event["phase"], "")),
            Cell(f"{_left(event, now):>9}  "),
            Cell(f"{kind_of(event):<9}  {several(event['resources'])}"),
        )
        for event in ordered
    ]


def _left(event: Json, now: datetime) -> str:
    if event["phase"] == "started":
        return "under way"
    return countdown(from_wire(event["notBefore"]), now)
