"""`fairwarning token` creates, lists and revokes tokens of the control plane."""

import getpass
import re
import socket
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.lookup import TOKEN, with_id
from fairwarning.cli.output import echo_json
from fairwarning.cli.store_options import store_file_option, store_of
from fairwarning.cli.table_model import Cell, Column, Listing, line
from fairwarning.cli.tables.cells import short_time, soon, zone_note

_ROLES = click.Choice(["viewer", "approver", "operator", "admin"])
_NAME_MAX = 64  # The longest name of a token.


@click.group(
    epilog="""\b
Examples:
  fairwarning token create --role operator --name ci --expires 90d
  fairwarning token list
  fairwarning token revoke ci
"""
)
def token() -> None:
    """Create, list and revoke the tokens that give access to the server."""


@token.command(
    epilog="""\b
Examples:
  fairwarning token create --role viewer
  (umask 077; fairwarning token create --role operator --name ci --expires 90d > token)
  fairwarning token create --role admin --name ada --store sqlite:///srv/fairwarning.db
"""
)
@click.option(
    "--role",
    type=_ROLES,
    required=True,
    help="Role of the token, which limits what its user may do.",
)
@click.option(
    "--name",
    metavar="N",
    help="Name of the token's user (default: your user name and this host's name).",
)
@click.option(
    "--expires",
    type=duration,
    metavar="D",
    help="How long the token is valid (default: without end).",
)
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Create the token directly in this store, without a server. The first token of a server "
    "that is not on loopback needs this. A SQLite file must not be in use.",
)
@store_file_option
@why_option
@connected
def create(
    session: Session,
    role: str,
    name: str | None,
    expires: str | None,
    store_url: str | None,
    store_file: Path | None,
    why: str | None,
) -> None:
    """Create a token and print its secret, which is shown only this once."""
    body = {"name": name or default_name(), "role": role}
    if expires:
        body["expires"] = expires
    store_url = store_of(store_url, store_file)
    if store_url is not None:
        made = import_module("fairwarning.cli.store_token").make_in_store(store_url, body)
    else:
        # No idempotency key: the server would have to keep the secret to give it again.
        made = session.api.post("tokens", body=body, repeatable=False, why=why)
    if session.as_json:
        echo_json(made)
        return
    session.note(f"Token {made['id']} for {made['name']}, {made['role']}. Keep the secret now:")
    click.echo(made["secret"])


def default_name() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "somebody"
    return re.sub(r"[^A-Za-z0-9._@-]", "-", f"{user}@{socket.gethostname()}")[:_NAME_MAX]


@token.command("list", epilog="Example: fairwarning token list --json")
@connected
def list_tokens(session: Session) -> None:
    """List the tokens, without their secrets."""
    found = session.api.pages("tokens", key="tokens")
    session.answer(found, lambda now: [tokens_table(found["tokens"], now)])


@token.command(epilog="Example: fairwarning token revoke ci")
@click.argument("id")
@why_option
@connected
def revoke(session: Session, id: str, why: str | None) -> None:
    """Revoke the token ID at once. A unique beginning of its id or name is enough."""
    api = session.api
    done = with_id(api, TOKEN, id, lambda whole: api.delete("tokens", whole, why=why))
    session.answer(done, lambda _: [line(f"Token {id} is revoked.")])


Json = dict[str, Any]
_COLUMNS = (
    Column("ID", whole=True),
    Column("NAME"),
    Column("ROLE", whole=True),
    Column("CREATED", whole=True),
    Column("BY"),
    Column("EXPIRES", whole=True),
    Column("LAST USED", whole=True),
)


def tokens_table(tokens: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(token["id"], "bold"),
            Cell(token["name"]),
            Cell(token["role"]),
            short_time(token.get("created"), now),
            Cell(token.get("createdBy", "")),
            soon(token.get("expires"), now) if token.get("expires") else Cell("never", "dim"),
            soon(token.get("lastUsed"), now) if token.get("lastUsed") else Cell("never", "dim"),
        )
        for token in tokens
    )
    return Listing(
        columns=_COLUMNS,
        rows=rows,
        empty="No tokens. Make one with `fairwarning token create --role ROLE`.",
        note=zone_note(now),
    )
