"""Targets of notices, and what could not be delivered to them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fairwarning.cli.listing import Card, Cell, Column, Listing
from fairwarning.cli.tables.cells import when
from fairwarning.cli.text import several

Json = dict[str, Any]

_TARGETS = (
    Column("ID", whole=True),
    Column("NAME"),
    Column("KIND"),
    Column("URL"),
    Column("TELLS OF"),
    Column("CREATED"),
)
_LETTERS = (
    Column("ID", whole=True),
    Column("NOTICE"),
    Column("TITLE"),
    Column("TRIES"),
    Column("ERROR"),
)


def notices_table(notices: Sequence[Json], now: datetime) -> Listing:
    rows = tuple(
        (
            Cell(notice["id"], "bold"),
            Cell(notice["name"]),
            Cell(notice["kind"]),
            Cell(notice["url"]),
            Cell(tells_of(notice["filters"])),
            when(notice.get("created"), now),
        )
        for notice in notices
    )
    return Listing(
        columns=_TARGETS, rows=rows, empty="Nobody is told. See `fairwarning notice add --help`."
    )


def notice_card(notice: Json, now: datetime) -> Card:
    return Card(
        title=Cell(f"{notice['kind']} {notice['name']}", "bold"),
        facts=(
            ("id", Cell(notice["id"], "bold")),
            ("url", Cell(notice["url"])),
            ("tells of", Cell(tells_of(notice["filters"]))),
            ("created", when(notice.get("created"), now)),
        ),
    )


def tells_of(filters: Json) -> str:
    """`Scheduled, Started of Reboot in web`."""
    told = several(filters.get("kinds") or [], 6) or "everything"
    for word, name in (("of", "types"), ("from", "sources"), ("in", "scopes")):
        if filters.get(name):
            told += f" {word} {several(filters[name])}"
    return told


def letters_table(letters: Sequence[Json]) -> Listing:
    rows = tuple(
        (
            Cell(letter["id"], "bold"),
            Cell(letter["notice"]),
            Cell(letter["title"]),
            Cell(str(letter["attempts"])),
            Cell(letter["error"], "red"),
        )
        for letter in letters
    )
    return Listing(columns=_LETTERS, rows=rows, empty="Everything was delivered.")
