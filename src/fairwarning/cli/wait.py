"""Implements `--wait`: follows an event to its end and shows progress on standard error."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from fairwarning.cli.common_options import Session
from fairwarning.cli.event_stream import Back, Entry, Feed, Lost
from fairwarning.cli.output import draw, make_console, text_of
from fairwarning.cli.table_model import Cell, Lines
from fairwarning.cli.tables.events import event_card, kind_of
from fairwarning.cli.tables.history import entry_line
from fairwarning.cli.times import countdown, from_wire, human_duration
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import several

if TYPE_CHECKING:
    from rich.live import Live

Json = dict[str, Any]
_ENDED = ("completed", "cancelled", "failed")

wait_option = click.option(
    "--wait",
    is_flag=True,
    help="Follow the event until it has ended. The exit code is 1 if it did not complete.",
)


def conclude(session: Session, event: Json, *, wait: bool) -> None:
    """Show the event that a command made. If `wait` is true, wait for its end first.

    Raises `Problem` if the wait ends and the event did not complete.
    """
    if wait:
        event = wait_for(session, event)
    session.answer(event, lambda now: [event_card(event, now)])
    if wait:
        refuse_unfinished([event])


def refuse_unfinished(events: Sequence[Json]) -> None:
    """Raise `Problem` if one of the events did not complete."""
    for event in events:
        if event["phase"] != "completed":
            raise Problem(ending(event))


def ending(event: Json) -> str:
    """Return a line that says how the event ended and which command shows more."""
    how = "failed" if event["phase"] == "failed" else f"was {event['phase']}"
    outcome = f": {event['outcome']}" if event.get("outcome") else ""
    told = f"event {event['id']} {how}{outcome}"
    if event.get("replacedBy"):
        return (
            f"{told}; look at what took its place: `fairwarning event show {event['replacedBy']}`"
        )
    return f"{told}; see `fairwarning event show {event['id']}`"


def wait_for(session: Session, event: Json) -> Json:
    try:
        return _follow(session, str(event["id"]))
    except KeyboardInterrupt:
        raise Problem(
            f"you stopped waiting, and the event goes on; look at it with "
            f"`fairwarning event show {event['id']}`"
        ) from None


def progress(event: Json, now: datetime) -> str:
    """Return the progress, such as `Reboot of web-0: scheduled, starts in 14:05 at latest`."""
    what = f"{kind_of(event)} of {several(event['resources'])}"
    if event["phase"] == "scheduled":
        left = countdown(from_wire(event["notBefore"]), now)
        when = "is due, and waits for its turn" if left == "due" else f"starts in {left} at latest"
        return f"{what}: scheduled, {when}"
    if event["phase"] == "started" and event.get("started"):
        since_ms = max(0, round((now - from_wire(event["started"])).total_seconds() * 1000))
        return f"{what}: under way for {human_duration(since_ms)}"
    return f"{what}: {event['phase']}"


def _follow(session: Session, event_id: str) -> Json:
    event = session.api.get("events", event_id)
    if event["phase"] in _ENDED:
        return event
    last = event["timeline"][-1]["position"] if event["timeline"] else None
    feed = Feed(session.api.stream, last)
    is_live = sys.stderr.isatty()
    with _live() if is_live else nullcontext() as live:
        _say(live, (Cell(f"waiting for event {event_id}", "dim"),))
        while event["phase"] not in _ENDED:
            _redraw(live, progress(event, session.clock.now()))
            happening = feed.next(1.0 if is_live else None)
            if isinstance(happening, Entry) and happening.body.get("event") == event_id:
                session.clock.saw(from_wire(happening.body["at"]))
                _say(live, entry_line(happening.body))
                event = session.api.get("events", event_id)
            elif isinstance(happening, Back):
                event = session.api.get("events", event_id)
            elif isinstance(happening, Lost):
                _say(live, (Cell(f"connection lost ({happening.reason}); trying again", "red"),))
    return event


def _live() -> "AbstractContextManager[Live]":
    from rich.live import Live  # noqa: PLC0415  only on a terminal

    return Live(console=make_console(err=True), auto_refresh=False, transient=True)


def _redraw(live: "Live | None", text: str) -> None:
    if live is not None:
        live.update(text_of(Cell(text)), refresh=True)


def _say(live: "Live | None", cells: tuple[Cell, ...]) -> None:
    draw(live.console if live else make_console(err=True), Lines(lines=(cells,)))
