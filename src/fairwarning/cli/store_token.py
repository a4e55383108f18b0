"""A token made in the store itself. Loads the server, so it is imported only when asked for."""

import asyncio

import click

from fairwarning.boot import BadStoreUrl, make_token_in
from fairwarning.control.access import ROLES
from fairwarning.core.spans import parse_duration_ms
from fairwarning.engine.ports import StoreDown


def make_in_store(store_url: str, body: dict[str, str]) -> dict[str, str]:
    for_ms = parse_duration_ms(body["expires"]) if "expires" in body else None
    making = make_token_in(store_url, body["name"], ROLES[body["role"]], for_ms=for_ms)
    try:
        token, secret = asyncio.run(making)
    except (BadStoreUrl, StoreDown) as problem:
        raise click.ClickException(str(problem)) from None
    return {"id": token.id, "name": token.name, "role": token.role, "secret": secret}
