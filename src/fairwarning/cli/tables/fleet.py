"""Makes tables of the fleet, and lists of the changes to it."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from fairwarning.cli.table_model import Cell, Column, Lines, Listing, Shown
from fairwarning.cli.tables.cells import short_scope, short_scopes
from fairwarning.cli.tables.scale_sets import model_text
from fairwarning.common.escape import counted

Json = dict[str, Any]

CHANGES_SHOWN_MAX = 500  # More than anybody reads.
ADDITIONS_SHOWN = 20
"""How many additions are shown, as examples, if there are more than `CHANGES_SHOWN_MAX` changes."""

_SCOPES = (
    Column("SCOPE"),
    Column("INSTANCES"),
    Column("DOMAINS"),
    Column("WATCHED"),
    Column("EVENTS"),
    Column("LOCATION"),
    Column("DRIVER"),
    Column("MODEL", wraps=True),
)
_INSTANCES = (
    Column("INSTANCE"),
    Column("SCOPE"),
    Column("UD"),
    Column("FD"),
    Column("ADDRESSES", wraps=True),
    Column("POWER"),
    Column("PRIORITY"),
)
_POWER = {"running": "green", "stopped": "dim", "deallocated": "dim"}
_ACTIONS = {"add": ("+", "green"), "change": ("~", "yellow"), "remove": ("-", "red")}


def fleet_page(scopes: Sequence[Json]) -> list[Shown]:
    names = short_scopes(scope["id"] for scope in scopes)
    # The column MODEL is left out if no scope has a model, because terminals are narrow.
    width = len(_SCOPES) - (not any(map(model_text, scopes)))
    summary = Listing(
        columns=_SCOPES[:width],
        rows=tuple(_scope_row(scope, names)[:width] for scope in scopes),
        empty="No scope fits. Declare a fleet with `fairwarning fleet apply FILE`.",
    )
    if not scopes:
        return [summary]
    rows = tuple(
        _instance_row(instance, names[scope["id"]])
        for scope in scopes
        for instance in scope["instances"]
    )
    return [summary, Listing(columns=_INSTANCES, rows=rows, empty="They have no instances.")]


def _scope_row(scope: Json, names: dict[str, str]) -> tuple[Cell, ...]:
    test = ", test" if scope.get("test") else ""
    return (
        Cell(names[scope["id"]], "bold"),
        Cell(_count(scope)),
        Cell(str(scope["updateDomains"])),
        Cell("yes", "green") if scope["activated"] else Cell("no", "dim"),
        Cell(str(scope["pendingEvents"]), "yellow" if scope["pendingEvents"] else "dim"),
        Cell(scope["location"]),
        Cell(f"{scope['driver']}{test}"),
        Cell(model_text(scope)),
    )


def _count(scope: Json) -> str:
    """Return the number of instances, such as `5`, or `5, 2 going` if 2 are being deleted."""
    instances = len(scope["instances"])
    going = instances - scope.get("capacity", instances)
    return f"{instances}, {going} going" if going else str(instances)


def _instance_row(instance: Json, scope: str) -> tuple[Cell, ...]:
    return (
        Cell(instance["name"], "bold"),
        Cell(scope),
        Cell(str(instance["updateDomain"])),
        Cell(str(instance["faultDomain"])),
        Cell(", ".join(instance["addresses"])),
        Cell(instance["power"], _POWER.get(instance["power"], "")),
        Cell(instance["priority"]),
    )


def changes_list(changes: Sequence[Json]) -> Lines:
    """Return a line with `+`, `~` or `-` for each change, and one for each event it cancels.

    If there are very many, only some of those that add something are shown. Nothing else is left
    out, because it can do harm.
    """
    shown = _without_most_additions(changes) if len(changes) > CHANGES_SHOWN_MAX else changes
    lines = [line for change in shown for line in _change_lines(change)]
    if len(shown) < len(changes):
        rest = f"+ {len(changes) - len(shown):,} more are added (--json shows them all)"
        lines.append((Cell(rest, "green"),))
    return Lines(lines=tuple(lines))


def _without_most_additions(changes: Sequence[Json]) -> list[Json]:
    added = (change for change in changes if change["action"] == "add")
    first = {id(change) for change in islice(added, ADDITIONS_SHOWN)}
    return [each for each in changes if each["action"] != "add" or id(each) in first]


def _change_lines(change: Json) -> list[tuple[Cell, ...]]:
    sign, style = _ACTIONS.get(change["action"], ("?", ""))
    detail = f": {change['detail']}" if change.get("detail") else ""
    is_scope = change["what"].endswith(change["scope"])
    first = (
        Cell(f"{sign} {change['what']}", style),
        Cell(detail),
        Cell("" if is_scope else f"  in {short_scope(change['scope'])}", "dim"),
    )
    ended = [(Cell(f"    cancels event {id}", "red"),) for id in change.get("events") or ()]
    return [first, *ended]


def cancelled_by(changes: Sequence[Json]) -> list[str]:
    """Return the ids of the pending events that these changes would cancel."""
    return sorted({id for change in changes for id in change.get("events") or ()})


def changes_summary(changes: Sequence[Json]) -> str:
    """Return the counts in words, such as `2 added, 1 changed, 1 leaving by Terminate`."""
    words = {
        "add": "added",
        "change": "changed",
        "remove": "removed",
        "leave": "leaving by Terminate",
    }
    kinds = [_kind(change) for change in changes]
    counts = {word: kinds.count(kind) for kind, word in words.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _kind(change: Json) -> str:
    leaves = change.get("terminateNotice") and not change.get("withoutNotice")
    return "leave" if leaves else str(change["action"])


def kept_note(kept: Sequence[str]) -> str:
    return f"{counted(len(kept), 'scope')} not in the file, declared elsewhere, left as is."
