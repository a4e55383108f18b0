"""Tokens: who may do what, and until when. Never a secret."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.listing import Cell, Column, Listing
from fairwarning.cli.tables.cells import when

Json = dict[str, Any]

_COLUMNS = (
    Column("ID", whole=True),
    Column("NAME"),
    Column("ROLE"),
    Column("CREATED"),
    Column("BY"),
    Column("EXPIRES"),
    Column("LAST USED"),
)


def tokens_table(tokens: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(token["id"], "bold"),
            Cell(token["name"]),
            Cell(token["role"]),
            when(token.get("created"), now),
            Cell(token.get("createdBy", "")),
            when(token["expires"], now) if token.get("expires") else Cell("never", "dim"),
            when(token["lastUsed"], now) if token.get("lastUsed") else Cell("never", "dim"),
        )
        for token in tokens
    )
    return Listing(
        columns=_COLUMNS,
        rows=rows,
        empty="No tokens. Make one with `fairwarning token create --role ROLE`.",
    )
