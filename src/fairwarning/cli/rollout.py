"""`fairwarning rollout` plans, starts and controls rollouts."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.common_options import (
    Session,
    confirm,
    connected,
    limit_option,
    why_option,
    yes_option,
)
from fairwarning.cli.completion import complete_rollout, complete_scope
from fairwarning.cli.lookup import ROLLOUT, with_id
from fairwarning.cli.table_model import Card, Cell, Column, Lines, Listing, Shown, line
from fairwarning.cli.tables.cells import (
    phase,
    short_ids,
    short_scopes,
    short_time,
    when,
    zone_note,
)
from fairwarning.cli.times import human_duration, parse_duration_ms
from fairwarning.common.escape import counted, several
from fairwarning.core.refusals import Refused
from fairwarning.core.rollouts.windows import parse_blackout, parse_window

Json = dict[str, Any]
_TYPE = click.Choice(["Freeze", "Reboot", "Redeploy"], case_sensitive=False)


def _each(parse: Callable[[str], Any]) -> Callable[..., list[Any]]:
    def callback(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[Any]:
        try:
            return [parse(value) for value in values]
        except Refused as refused:
            raise click.BadParameter(refused.message) from None

    return callback


def _window(text: str) -> Json:
    window = parse_window(text)
    return {"days": list(window.day_names), "from": window.opens, "to": window.closes}


def _blackout(text: str) -> str:
    return str(parse_blackout(text))


_PLAN = (
    click.argument("scopes", nargs=-1, metavar="SCOPE...", shell_complete=complete_scope),
    click.option(
        "--type", type=_TYPE, required=True, help="Type of the event that each instance gets."
    ),
    click.option("--name", metavar="TEXT", help="Name of the rollout."),
    click.option(
        "--description", metavar="TEXT", help="Description that instances read in the event."
    ),
    click.option(
        "--scopes-at-once",
        type=click.IntRange(1),
        metavar="N",
        help="How many scopes are worked on at the same time (default: 1).",
    ),
    click.option(
        "--pause", type=duration, metavar="D", help="How long to wait between two steps of a scope."
    ),
    click.option(
        "--window",
        "windows",
        multiple=True,
        callback=_each(_window),
        metavar="W",
        help="Window in which impacts may happen, such as 'mon-fri 22:00-04:00' (repeatable; "
        "default: at any time).",
    ),
    click.option(
        "--time-zone", metavar="Z", help="Time zone of --window and --blackout (default: UTC)."
    ),
    click.option(
        "--blackout",
        "blackouts",
        multiple=True,
        callback=_each(_blackout),
        metavar="B",
        help="Days without impacts: 2026-12-24, or 2026-12-24/2026-12-26 (repeatable).",
    ),
    click.option(
        "--notice",
        type=duration,
        metavar="D",
        help="How much notice each event gets (default: the minimum of its type).",
    ),
    click.option("--duration", type=duration, metavar="D", help="How long each impact lasts."),
    click.option(
        "--keep-going",
        is_flag=True,
        help="Continue the rollout if one of its events fails (default: stop the rollout).",
    ),
    click.option(
        "--whole-fleet",
        is_flag=True,
        help="Include all scopes of the fleet. Do not name a SCOPE then.",
    ),
)


def _planned(command: Callable[..., Any]) -> Callable[..., Any]:
    for parameter in reversed(_PLAN):
        command = parameter(command)
    return command


def rollout_body(
    *, scopes: tuple[str, ...], whole_fleet: bool, keep_going: bool, **given: Any
) -> Json:
    """Return the body of the API's request.

    Raises `click.UsageError` unless there is exactly one of `scopes` and `whole_fleet`.
    """
    if bool(scopes) == whole_fleet:
        raise click.UsageError("name the scopes, or say --whole-fleet for all of them")
    body: Json = {"scopes": list(scopes), "stopOnFailure": not keep_going}
    names = {"scopes_at_once": "scopesAtOnce", "time_zone": "timeZone"}
    body |= {names.get(name, name): value for name, value in given.items() if value}
    return body


@click.group(
    epilog="""\b
Examples:
  fairwarning rollout plan web workers --type reboot
  fairwarning rollout start web --type redeploy --window 'sat,sun 01:00-05:00'
  fairwarning rollout pause patches
"""
)
def rollout() -> None:
    """Plan and run maintenance of many instances, one update domain at a time."""


@rollout.command(
    epilog="""\b
Examples:
  fairwarning rollout plan web --type reboot --pause 10m
  fairwarning rollout plan --whole-fleet --type freeze --window 22:00-04:00 --json
"""
)
@_planned
@connected
def plan(session: Session, **given: Any) -> None:
    """Show what a rollout would do and when. Nothing is announced."""
    found = session.api.post("rollouts", "plan", body=rollout_body(**given), repeatable=False)
    session.answer(found, lambda now: plan_page(found, now, _zone(given["time_zone"])))


@rollout.command(
    epilog="""\b
Examples:
  fairwarning rollout start web workers --type reboot --scopes-at-once 2
  fairwarning rollout start web --type redeploy --window 22:00-04:00 --time-zone Europe/Berlin
  fairwarning rollout start --whole-fleet --type reboot --blackout 2026-12-24/2026-12-26 --yes
"""
)
@_planned
@yes_option
@why_option
@connected
def start(session: Session, yes: bool, why: str | None, **given: Any) -> None:
    """Show the plan of a rollout, ask, and start it."""
    body = rollout_body(**given)
    planned = session.api.post("rollouts", "plan", body=body, repeatable=False)
    if yes:
        for warning in planned["warnings"]:
            session.note(f"warning: {warning}")
    else:
        session.tell(*plan_page(planned, session.clock.now(), _zone(given["time_zone"])))
        count = planned.get("total") or len(planned["steps"])
        confirm(f"Start these {counted(count, 'step')}?", yes=False)
    made = session.api.post("rollouts", body=body, why=why)
    session.answer(made, lambda now: rollout_page(made, now))


@rollout.command("list", epilog="Example: fairwarning rollout list --limit 5")
@limit_option("rollouts", 50)
@connected
def list_rollouts(session: Session, limit: int) -> None:
    """List the rollouts, the newest first."""
    found = session.api.pages("rollouts", key="rollouts", limit=limit)
    session.answer(found, lambda now: [rollouts_table(found["rollouts"], now)])


@rollout.command(epilog="Example: fairwarning rollout show patches")
@click.argument("id", shell_complete=complete_rollout)
@connected
def show(session: Session, id: str) -> None:
    """Show the rollout ID and each of its steps.

    ID may also be the rollout's name, or a unique beginning of its id or name.
    """
    api = session.api
    found = with_id(api, ROLLOUT, id, lambda whole: api.get("rollouts", whole))
    session.answer(found, lambda now: rollout_page(found, now))


@rollout.command(epilog="Example: fairwarning rollout steps patches --limit 500")
@click.argument("id", shell_complete=complete_rollout)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="How many steps are shown at most (default: all).",
)
@connected
def steps(session: Session, id: str, limit: int | None) -> None:
    """Show all steps of the rollout ID, even if there are very many.

    ID may also be the rollout's name, or a unique beginning of its id or name.
    """
    api = session.api
    found = with_id(
        api,
        ROLLOUT,
        id,
        lambda whole: api.pages("rollouts", whole, "steps", key="steps", limit=limit),
    )
    session.answer(found, lambda now: [_steps_table(found["steps"], now, None, _STEPS)])


def _verb(name: str, told: str) -> None:
    @rollout.command(name, help=told, epilog=f"Example: fairwarning rollout {name} patches")
    @click.argument("id", shell_complete=complete_rollout)
    @why_option
    @connected
    def command(session: Session, id: str, why: str | None) -> None:
        api = session.api
        found = with_id(api, ROLLOUT, id, lambda whole: api.post("rollouts", whole, name, why=why))
        session.answer(found, lambda now: rollout_page(found, now))


_STEPS = (
    Column("SCOPE"),
    Column("UD"),
    Column("INSTANCES"),
    Column("PHASE", whole=True),
    Column("ANNOUNCED", whole=True),
    Column("NOT BEFORE", whole=True),
    Column("ENDS", whole=True),
    Column("EVENT", whole=True),
)
_PLANNED = tuple(each for each in _STEPS if each.title not in ("PHASE", "EVENT"))


def _zone(name: str | None) -> tzinfo | None:
    """Return the time zone, or None (the local one) if none is asked for or it is unknown."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None  # The server refuses it, in its own words.


def _zone_of(rollout: Json) -> tzinfo | None:
    """Return the zone of the rollout's windows. Without windows the local zone is shown."""
    has_zone = rollout.get("windows") or rollout.get("blackouts")
    return _zone(rollout.get("timeZone")) if has_zone else None


def rollout_page(rollout: Json, now: datetime) -> list[Shown]:
    zone = _zone_of(rollout)
    windows = ", ".join(
        f"{','.join(each.get('days') or ())} {each['from']}-{each['to']}"
        for each in rollout.get("windows") or ()
    )
    card = Card(
        title=Cell(f"{rollout['type']} rollout {rollout.get('name') or ''}".strip(), "bold"),
        facts=(
            ("id", Cell(rollout["id"], "bold")),
            ("phase", phase(rollout["phase"])),
            ("progress", Cell(progress(rollout))),
            ("scopes", Cell(several(rollout.get("scopes") or []) or "the whole fleet")),
            ("at once", Cell(str(rollout.get("scopesAtOnce") or ""))),
            ("pause", Cell(_duration(rollout.get("pause")))),
            ("notice", Cell(_duration(rollout.get("notice")))),
            ("duration", Cell(_duration(rollout.get("duration")))),
            ("on failure", Cell("stops" if rollout.get("stopOnFailure", True) else "goes on")),
            ("windows", Cell(f"{windows} {rollout.get('timeZone') or ''}" if windows else "")),
            ("blackouts", Cell(", ".join(rollout.get("blackouts") or ()))),
            ("description", Cell(rollout.get("description") or "")),
            ("created", when(rollout.get("created"), now, zone)),
            ("by", Cell(rollout.get("createdBy") or "")),
            ("why", Cell(rollout.get("why") or "")),
            ("ended", when(rollout.get("ended"), now, zone)),
            ("outcome", Cell(rollout.get("outcome") or "")),
        ),
    )
    steps = _steps_table(rollout["steps"], now, zone, _STEPS)
    if sum(_counts(rollout).values()) <= len(rollout["steps"]):
        return [card, steps]
    return [
        card,
        line("These steps are under way or come next:", "dim"),
        steps,
        line("`fairwarning rollout steps` shows all.", "dim"),
    ]


def _counts(rollout: Json) -> Counter[str]:
    """Return how many steps are in each phase. An older server does not send this."""
    if rollout.get("counts"):
        return Counter(rollout["counts"])
    return Counter(step["phase"] for step in rollout["steps"])


def progress(rollout: Json) -> str:
    """Return the progress in words, such as `2 of 6 done, 1 started`."""
    counts = _counts(rollout)
    total = counts.total()
    done = counts.pop("completed", 0)
    counts.pop("waiting", None)
    rest = "".join(f", {count} {name}" for name, count in sorted(counts.items()))
    return f"{done} of {total} done{rest}"


def _steps_table(
    steps: Sequence[Json], now: datetime, zone: tzinfo | None, columns: Sequence[Column]
) -> Listing:
    names = short_scopes(step["scope"] for step in steps)
    ids = short_ids(step["event"] for step in steps if step.get("event"))
    shown = [_STEPS.index(column) for column in columns]
    rows = [_step_row(step, names[step["scope"]], ids, now, zone) for step in steps]
    return Listing(
        columns=tuple(columns),
        rows=tuple(tuple(row[number] for number in shown) for row in rows),
        empty=_NOTHING,
        note=zone_note(now, zone),
    )


_NOTHING = "There is nothing to do: these scopes have no running instances."


def _step_row(
    step: Json, scope: str, ids: dict[str, str], now: datetime, zone: tzinfo | None
) -> tuple[Cell, ...]:
    estimate = "~ " if step["phase"] == "waiting" else ""

    def at(name: str) -> Cell:
        found = short_time(step.get(name), now, zone)
        return Cell(f"{estimate}{found.text}", "dim") if estimate and found.text else found

    return (
        Cell(scope, "bold"),
        Cell(str(step["updateDomain"])),
        Cell(several(step["instances"])),
        phase(step["phase"]),
        at("announceAt"),
        at("notBefore"),
        at("ends"),
        Cell(ids.get(step.get("event") or "", "")),
    )


def _duration(text: str | None) -> str:
    length_ms = parse_duration_ms(text) if text else 0
    return human_duration(length_ms) if length_ms else ""


_verb("pause", "Announce no more events for the rollout ID. Announced events go on.")
_verb("resume", "Resume the paused rollout ID.")
_verb("cancel", "End the rollout ID. Events that have started go on to their end.")
_ROLLOUTS = (
    Column("ID", whole=True),
    Column("TYPE", whole=True),
    Column("PHASE", whole=True),
    Column("STEPS", wraps=True),
    Column("CREATED", whole=True),
    Column("BY"),
    Column("NAME"),
)


def plan_page(plan: Json, now: datetime, zone: tzinfo | None = None) -> list[Shown]:
    """Return the steps of a plan in the asked time zone, its warnings, and when it would end."""
    steps = plan["steps"]
    shown: list[Shown] = [_steps_table(steps, now, zone, _PLANNED)]
    more = plan.get("total", 0) - len(steps)
    if more > 0:
        shown.append(line(f"{more:,} more steps follow.", "dim"))
    notes = [(Cell(f"warning: {text}", "yellow"),) for text in plan.get("warnings") or ()]
    if plan.get("ends") and steps:
        notes.append((Cell(f"It would end {when(plan['ends'], now, zone).text}."),))
    return [*shown, Lines(lines=tuple(notes))]


def rollouts_table(rollouts: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(rollout["id"], "bold"),
            Cell(rollout["type"]),
            phase(rollout["phase"]),
            Cell(progress(rollout)),
            short_time(rollout.get("created"), now),
            Cell(rollout.get("createdBy") or ""),
            Cell(rollout.get("name") or ""),
        )
        for rollout in rollouts
    )
    return Listing(
        columns=_ROLLOUTS,
        rows=rows,
        empty="No rollouts. See `fairwarning rollout start --help`.",
        note=zone_note(now),
    )
