"""`fairwarning watch`: the fleet, its events and what happens, live."""

import json
import sys

import click

from fairwarning.cli.follow import Entry, Feed, Lost
from fairwarning.cli.listing import Lines
from fairwarning.cli.output import draw, make_console
from fairwarning.cli.session import Session, connected
from fairwarning.cli.tables.history import entry_line


@click.command(
    epilog="""\b
Examples:
  fairwarning watch
  fairwarning watch | tee transitions.log
  fairwarning watch --json | jq -r 'select(.kind == "Failed").text'
"""
)
@connected
def watch(session: Session) -> None:
    """Watch the fleet on a live screen until q or Ctrl-C.

    Into a pipe it prints a line for each transition, with --json a JSON object.
    """
    if session.as_json or not sys.stdout.isatty():
        _print_lines(session)
        return
    from fairwarning.cli.watching.keeper import Keeper  # noqa: PLC0415  help must not wait
    from fairwarning.cli.watching.live import show_live  # noqa: PLC0415

    show_live(Keeper(session.api, session.clock), session.clock, session.api.url)


def _print_lines(session: Session) -> None:
    newest = session.api.get("history", limit=1)["entries"]
    feed = Feed(session.api.stream, newest[0]["position"] if newest else None)
    session.note(f"Watching {session.api.url} until Ctrl-C.")
    console = None if session.as_json else make_console()
    try:
        while True:
            happening = feed.next()
            if isinstance(happening, Lost):
                session.note(f"connection lost ({happening.reason}); trying again")
            elif isinstance(happening, Entry) and console is None:
                click.echo(json.dumps(happening.body, ensure_ascii=False))
            elif isinstance(happening, Entry) and console is not None:
                draw(console, Lines(lines=(entry_line(happening.body),)))
                sys.stdout.flush()
    except KeyboardInterrupt:
        return
