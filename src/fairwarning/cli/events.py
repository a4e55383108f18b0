"""`fairwarning events`, `event show`, `approve`, `cancel` and `postpone` show and decide events."""

import click

from fairwarning.cli.click_types import EVENT_TYPE, duration
from fairwarning.cli.common_options import Session, connected, limit_option, why_option
from fairwarning.cli.completion import complete_event, complete_scope
from fairwarning.cli.lookup import UNFINISHED, find_event_id
from fairwarning.cli.schedule import read_time
from fairwarning.cli.tables.events import event_card, event_page, events_table

_id_argument = click.argument("id", shell_complete=complete_event)
_NONE = "No event is pending. See finished ones with `fairwarning events --all`."


@click.command(
    epilog="""\b
Examples:
  fairwarning events
  fairwarning events --all --scope web --type reboot --limit 10
  fairwarning events --json | jq -r '.events[].id'
"""
)
@click.option("--all", "is_all", is_flag=True, help="List finished events too.")
@click.option(
    "--scope", shell_complete=complete_scope, help="List only what belongs to this scope."
)
@click.option(
    "--type",
    "types",
    type=EVENT_TYPE,
    multiple=True,
    help="List only events of this type (repeatable).",
)
@limit_option("events", 100)
@connected
def events(
    session: Session, is_all: bool, scope: str | None, types: tuple[str, ...], limit: int
) -> None:
    """List the events that are not over, the newest first."""
    phases = () if is_all else UNFINISHED
    found = session.api.pages(
        "events", key="events", limit=limit, phase=phases, scope=scope, type=types
    )
    empty = "There are no events." if is_all else _NONE
    session.answer(found, lambda now: [events_table(found["events"], now, empty=empty)])


@click.group(epilog="Example: fairwarning event show 602d9444")
def event() -> None:
    """Show one event."""


@event.command(
    epilog="""\b
Examples:
  fairwarning event show 602d9444
  fairwarning event show 602d9444-d2cd-49c7-8624-8643e7171297 --json | jq .timeline
"""
)
@_id_argument
@connected
def show(session: Session, id: str) -> None:
    """Show the event ID (or a unique beginning of it) and its timeline."""
    found = session.api.get("events", find_event_id(session.api, id))
    session.answer(found, lambda now: event_page(found, now))


@click.command(epilog="Example: fairwarning approve 602d9444 --why 'drained by hand'")
@_id_argument
@why_option
@connected
def approve(session: Session, id: str, why: str | None) -> None:
    """Approve the event ID, so that it may start now. This cannot be undone."""
    whole = find_event_id(session.api, id)
    found = session.api.post("events", whole, "approve", why=why)
    session.answer(found, lambda now: [event_card(found, now)])


@click.command(epilog="Example: fairwarning cancel 602d9444 --reason 'the disk was fine'")
@_id_argument
@click.option("--reason", metavar="TEXT", help="Reason that is stated in the outcome of the event.")
@why_option
@connected
def cancel(session: Session, id: str, reason: str | None, why: str | None) -> None:
    """Cancel the event ID, which must not have started."""
    whole = find_event_id(session.api, id)
    body = {} if reason is None else {"reason": reason}
    found = session.api.post("events", whole, "cancel", body=body, why=why)
    session.answer(found, lambda now: [event_card(found, now)])


@click.command(
    epilog="""\b
Examples:
  fairwarning postpone 602d9444 --notice 2h
  fairwarning postpone 602d9444 --not-before 22:00
"""
)
@_id_argument
@click.option(
    "--not-before",
    metavar="T",
    help="Earliest start of the new event: 22:00, 2026-11-16T22:00, or RFC 3339.",
)
@click.option(
    "--notice",
    type=duration,
    metavar="D",
    help="Earliest start of the new event, counted from now, such as 2h. Give this or "
    "--not-before.",
)
@why_option
@connected
def postpone(
    session: Session, id: str, not_before: str | None, notice: str | None, why: str | None
) -> None:
    """Cancel the event ID and announce another in its place, at a later time."""
    if (not_before is None) == (notice is None):
        raise click.UsageError("say when: give one of --not-before and --notice")
    if not_before is not None:
        body = {"notBefore": read_time(session, "--not-before", not_before)}
    else:
        body = {"notice": str(notice)}
    whole = find_event_id(session.api, id)
    found = session.api.post("events", whole, "postpone", body=body, why=why)
    session.answer(found, lambda now: [event_card(found, now)])
