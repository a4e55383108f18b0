"""Rollouts: the plan, the steps so far, the list."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.listing import Card, Cell, Column, Lines, Listing, Shown
from fairwarning.cli.tables.cells import phase, short_scopes, when
from fairwarning.cli.text import several
from fairwarning.cli.times import human_duration, parse_duration_ms

Json = dict[str, Any]

_STEPS = (
    Column("SCOPE"),
    Column("UD"),
    Column("INSTANCES"),
    Column("PHASE"),
    Column("ANNOUNCED"),
    Column("NOT BEFORE"),
    Column("ENDS"),
    Column("EVENT", whole=True),
)
_ROLLOUTS = (
    Column("ID", whole=True),
    Column("TYPE"),
    Column("PHASE"),
    Column("STEPS"),
    Column("CREATED"),
    Column("BY"),
    Column("NAME"),
)


def plan_page(plan: Json, now: datetime) -> list[Shown]:
    steps = plan["steps"]
    shown: list[Shown] = [_steps_table(steps, now, with_events=False)]
    notes = [(Cell(f"warning: {text}", "yellow"),) for text in plan.get("warnings") or ()]
    if plan.get("ends") and steps:
        notes.append((Cell(f"It would end {when(plan['ends'], now).text}."),))
    return [*shown, Lines(lines=tuple(notes))]


def rollout_page(rollout: Json, now: datetime) -> list[Shown]:
    windows = ", ".join(
        f"{','.join(each.get('days') or ())} {each['from']}-{each['to']}"
        for each in rollout.get("windows") or ()
    )
    card = Card(
        title=Cell(f"{rollout['type']} rollout {rollout.get('name') or ''}".strip(), "bold"),
        facts=(
            ("id", Cell(rollout["id"], "bold")),
            ("phase", phase(rollout["phase"])),
            ("progress", Cell(progress(rollout["steps"]))),
            ("scopes", Cell(several(rollout.get("scopes") or []) or "the whole fleet")),
            ("at once", Cell(str(rollout.get("scopesAtOnce") or ""))),
            ("pause", Cell(_duration(rollout.get("pause")))),
            ("notice", Cell(_duration(rollout.get("notice")))),
            ("duration", Cell(_duration(rollout.get("duration")))),
            ("on failure", Cell("stops" if rollout.get("stopOnFailure", True) else "goes on")),
            ("windows", Cell(f"{windows} {rollout.get('timeZone') or ''}" if windows else "")),
            ("blackouts", Cell(", ".join(rollout.get("blackouts") or ()))),
            ("description", Cell(rollout.get("description") or "")),
            ("created", when(rollout.get("created"), now)),
            ("by", Cell(rollout.get("createdBy") or "")),
            ("ended", when(rollout.get("ended"), now)),
            ("outcome", Cell(rollout.get("outcome") or "")),
        ),
    )
    return [card, _steps_table(rollout["steps"], now, with_events=True)]


def rollouts_table(rollouts: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(rollout["id"], "bold"),
            Cell(rollout["type"]),
            phase(rollout["phase"]),
            Cell(progress(rollout["steps"])),
            when(rollout.get("created"), now),
            Cell(rollout.get("createdBy") or ""),
            Cell(rollout.get("name") or ""),
        )
        for rollout in rollouts
    )
    return Listing(
        columns=_ROLLOUTS, rows=rows, empty="No rollouts. See `fairwarning rollout start --help`."
    )


def progress(steps: Sequence[Json]) -> str:
    """`2 of 6 done, 1 started`."""
    counts = Counter(step["phase"] for step in steps)
    done = counts.pop("completed", 0)
    counts.pop("waiting", None)
    rest = "".join(f", {count} {name}" for name, count in sorted(counts.items()))
    return f"{done} of {len(steps)} done{rest}"


def _steps_table(steps: Sequence[Json], now: datetime, *, with_events: bool) -> Listing:
    names = short_scopes(step["scope"] for step in steps)
    rows = tuple(_step_row(step, names[step["scope"]], now) for step in steps)
    if not with_events:
        return Listing(columns=_STEPS[:-1], rows=tuple(row[:-1] for row in rows), empty=_NOTHING)
    return Listing(columns=_STEPS, rows=rows, empty=_NOTHING)


_NOTHING = "There is nothing to do: these scopes have no running instances."


def _step_row(step: Json, scope: str, now: datetime) -> tuple[Cell, ...]:
    estimate = "~ " if step["phase"] == "waiting" else ""

    def at(name: str) -> Cell:
        found = when(step.get(name), now)
        return Cell(f"{estimate}{found.text}", "dim") if estimate and found.text else found

    return (
        Cell(scope, "bold"),
        Cell(str(step["updateDomain"])),
        Cell(several(step["instances"])),
        phase(step["phase"]),
        at("announceAt"),
        at("notBefore"),
        at("ends"),
        Cell(step.get("event") or ""),
    )


def _duration(text: str | None) -> str:
    length_ms = parse_duration_ms(text) if text else 0
    return human_duration(length_ms) if length_ms else ""
