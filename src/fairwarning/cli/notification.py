"""`fairwarning notification` manages the webhooks, chats and mail that get notifications."""

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from fairwarning.cli.click_types import EVENT_TYPE
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.completion import complete_scope
from fairwarning.cli.lookup import DEAD_LETTER, TARGET, with_id
from fairwarning.cli.output import echo_json
from fairwarning.cli.table_model import Card, Cell, Column, Listing, line
from fairwarning.cli.tables.cells import short_time, when, zone_note
from fairwarning.common.command_errors import Problem
from fairwarning.common.escape import several
from fairwarning.common.text_files import read_text

_SOURCE = click.Choice(["Platform", "User"], case_sensitive=False)
_URL_VARIABLE = "FAIRWARNING_NOTIFICATION_URL"
_SECRET_VARIABLE = "FAIRWARNING_NOTIFICATION_SECRET"  # noqa: S105  the name of it, not the secret


@click.group(
    epilog="""\b
Examples:
  fairwarning notification add webhook --name ops --url-file hook-url
  fairwarning notification test ops
  fairwarning notification dead-letters
"""
)
def notification() -> None:
    """Manage the webhooks, chats and mail addresses that are notified of events."""


@notification.command(
    epilog=f"""\b
Examples:
  fairwarning notification add webhook --name ops --url-file hook-url
  fairwarning notification add webhook --name azure-style --format eventgrid --url-file hook-url
  fairwarning notification add apprise --name chat --type reboot --scope web    asks for the URL
  pass show chat-url | fairwarning notification add apprise --name chat
  {_URL_VARIABLE}=https://ops.example/hook fairwarning notification add webhook --name ops
"""
)
@click.argument("kind", type=click.Choice(["webhook", "apprise"]))
@click.option("--name", required=True, metavar="N", help="Name of the target.")
@click.option(
    "--url-file",
    metavar="FILE",
    help=f"File that holds the address; - is standard input (default: {_URL_VARIABLE}, else a "
    "pipe, else a prompt).",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    help=f"File that holds a webhook's signing key (default: {_SECRET_VARIABLE}, else the server "
    "creates a key).",
)
@click.option(
    "--format",
    type=click.Choice(["cloudevents", "eventgrid"]),
    help="Format of a webhook's messages: CloudEvents, or the one of Azure's Event Grid (default: "
    "cloudevents).",
)
@click.option(
    "--type",
    "types",
    type=EVENT_TYPE,
    multiple=True,
    help="Notify only of events of this type.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    shell_complete=complete_scope,
    help="Notify only of what happens in this scope.",
)
@click.option(
    "--source",
    "sources",
    type=_SOURCE,
    multiple=True,
    help="Notify only of events from this source.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Notify only of transitions of this kind, such as Scheduled.",
)
@click.option(
    "--title", metavar="TEXT", help="Title of the message, with placeholders such as $type."
)
@click.option(
    "--body", metavar="TEXT", help="Text of the message, with placeholders such as $text."
)
@why_option
@connected
def add(
    session: Session,
    kind: str,
    name: str,
    url_file: str | None,
    secret_file: str | None,
    format: str | None,
    why: str | None,
    title: str | None,
    body: str | None,
    **filters: tuple[str, ...],
) -> None:
    """Add a target: KIND is webhook (signed messages) or apprise (chat and mail).

    Addresses hold secrets, so they are never given on the command line. --type, --scope,
    --source and --kind may be given several times.
    """
    template = {"title": title, "body": body}
    target: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "url": read_secret("URL", option="--url-file", file=url_file, variable=_URL_VARIABLE),
        "filters": {key: list(values) for key, values in filters.items() if values},
        "template": {key: value for key, value in template.items() if value is not None},
    }
    if format is not None:
        target["format"] = format
    if secret_file is not None or os.environ.get(_SECRET_VARIABLE):
        target["secret"] = read_secret(
            "signing key", option="--secret-file", file=secret_file, variable=_SECRET_VARIABLE
        )
    # No idempotency key: the server would have to keep the secrets to answer again.
    made = session.api.post("notifications", body=target, repeatable=False, why=why)
    if session.as_json:
        echo_json(made)
        return
    session.answer(made, lambda now: [notification_card(made, now)])
    if made.get("secret"):
        session.note("It signs with this key, shown now and never again:")
        click.echo(made["secret"])


@notification.command("list", epilog="Example: fairwarning notification list")
@connected
def list_notifications(session: Session) -> None:
    """List the targets, without their secrets."""
    found = session.api.get("notifications")
    session.answer(found, lambda now: [notifications_table(found["notifications"], now)])


@notification.command(epilog="Example: fairwarning notification remove ops")
@click.argument("id")
@why_option
@connected
def remove(session: Session, id: str, why: str | None) -> None:
    """Remove the target ID (or its name), so that it gets no more notifications."""
    api = session.api
    done = with_id(api, TARGET, id, lambda whole: api.delete("notifications", whole, why=why))
    session.answer(done, lambda _: [line(f"Target {id} is removed.")])


@notification.command(epilog="Example: fairwarning notification test ops && echo it works")
@click.argument("id")
@connected
def test(session: Session, id: str) -> None:
    """Send a test message to the target ID (or its name)."""
    api = session.api
    done = with_id(
        api, TARGET, id, lambda whole: api.post("notifications", whole, "test", repeatable=False)
    )
    if session.as_json:
        echo_json(done)
    if not done["delivered"]:
        raise Problem(f"the test was not delivered: {done['error']}; mend the target and try again")
    if not session.as_json:
        session.answer(done, lambda _: [line("Delivered.", "green")])


@notification.command(
    "dead-letters",
    epilog="""\b
Examples:
  fairwarning notification dead-letters
  fairwarning notification dead-letters --retry 019a
  fairwarning notification dead-letters --discard 019a
""",
)
@click.option("--retry", metavar="ID", help="Try to deliver this message again.")
@click.option("--discard", metavar="ID", help="Delete this message.")
@why_option
@connected
def dead_letters(session: Session, retry: str | None, discard: str | None, why: str | None) -> None:
    """List the messages that could not be delivered, or retry or discard one of them."""
    if retry and discard:
        raise click.UsageError("--retry and --discard exclude each other; give one of them")
    api, letters = session.api, ("notifications", "dead-letters")
    if retry:
        done = with_id(
            api, DEAD_LETTER, retry, lambda whole: api.post(*letters, whole, "retry", why=why)
        )
        session.answer(done, lambda _: [line(f"{retry} will be tried again.")])
    elif discard:
        done = with_id(
            api, DEAD_LETTER, discard, lambda whole: api.delete(*letters, whole, why=why)
        )
        session.answer(done, lambda _: [line(f"{discard} is forgotten.")])
    else:
        found = api.pages(*letters, key="deadLetters")
        session.answer(found, lambda _: [letters_table(found["deadLetters"])])


# Reads secrets from a file, the environment, a pipe or a hidden prompt.
def read_secret(what: str, *, option: str, file: str | None, variable: str) -> str:
    """Read a secret from the file (`-` is standard input), else from the environment variable,
    else from standard input, which is a hidden prompt on a terminal.

    Raises `click.UsageError` if the file cannot be read or the secret is empty.
    """
    if file is not None:
        text = _read_file(option, file)
    elif os.environ.get(variable):
        text = os.environ[variable]
    elif sys.stdin.isatty():
        text = click.prompt(what, hide_input=True, err=True)
    else:
        text = _read_file(option, "-")
    if not text.strip():
        raise click.UsageError(f"the {what} is empty; give it with {option} or in {variable}")
    return text.strip()


def _read_file(option: str, file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else read_text(file)
    except OSError as error:
        raise click.UsageError(f"{option} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"what {option} gets from a pipe is not UTF-8 text") from None


# Tables of the targets, and of the messages that could not be delivered.
Json = dict[str, Any]
_TARGETS = (
    Column("ID", whole=True),
    Column("NAME"),
    Column("KIND", whole=True),
    Column("URL"),
    Column("TELLS OF", wraps=True),
    Column("CREATED", whole=True),
)
_LETTERS = (
    Column("ID", whole=True),
    Column("TARGET"),
    Column("TITLE", wraps=True),
    Column("TRIES"),
    Column("ERROR", wraps=True),
)


def notifications_table(targets: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(target["id"], "bold"),
            Cell(target["name"]),
            Cell(target["kind"]),
            Cell(target["url"]),
            Cell(tells_of(target["filters"])),
            short_time(target.get("created"), now),
        )
        for target in targets
    )
    return Listing(
        columns=_TARGETS,
        rows=rows,
        empty="Nobody is notified. See `fairwarning notification add --help`.",
        note=zone_note(now),
    )


def notification_card(target: Json, now: datetime) -> Card:
    return Card(
        title=Cell(f"{target['kind']} {target['name']}", "bold"),
        facts=(
            ("id", Cell(target["id"], "bold")),
            ("url", Cell(target["url"])),
            ("tells of", Cell(tells_of(target["filters"]))),
            ("created", when(target.get("created"), now)),
        ),
    )


def tells_of(filters: Json) -> str:
    """Return the filters in words, such as `Scheduled, Started of Reboot in web`."""
    told = several(filters.get("kinds") or [], 6) or "everything"
    for word, name in (("of", "types"), ("from", "sources"), ("in", "scopes")):
        if filters.get(name):
            told += f" {word} {several(filters[name])}"
    return told


def letters_table(letters: Sequence[Json]) -> Listing:
    rows = tuple(
        (
            Cell(letter["id"], "bold"),
            Cell(letter["target"]),
            Cell(letter["title"]),
            Cell(str(letter["attempts"])),
            Cell(letter["error"], "red"),
        )
        for letter in letters
    )
    return Listing(columns=_LETTERS, rows=rows, empty="Everything was delivered.")
