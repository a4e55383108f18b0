"""`fairwarning history` lists who did what, when and why."""

import click

from fairwarning.cli.common_options import Session, connected, limit_option
from fairwarning.cli.completion import complete_event, complete_scope
from fairwarning.cli.lookup import find_event_id
from fairwarning.cli.tables.history import history_table


@click.command(
    epilog="""\b
Examples:
  fairwarning history --scope web
  fairwarning history --event 602d9444
  fairwarning history --limit 1000 --json | jq '.entries[] | select(.kind == "Approved")'
"""
)
@click.option(
    "--scope", shell_complete=complete_scope, help="List only what belongs to this scope."
)
@click.option(
    "--event",
    metavar="ID",
    shell_complete=complete_event,
    help="List only what belongs to this event.",
)
@limit_option("entries", 50)
@connected
def history(session: Session, scope: str | None, event: str | None, limit: int) -> None:
    """List what happened, who did it and why, the newest first."""
    whole = find_event_id(session.api, event) if event else None
    found = session.api.pages("history", key="entries", limit=limit, scope=scope, event=whole)
    session.answer(found, lambda now: [history_table(found["entries"], now)])
