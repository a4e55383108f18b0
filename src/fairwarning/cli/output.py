"""Draws tables, cards and lines on a terminal, or as plain text into a pipe."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from fairwarning.cli.table_model import Card, Cell, Lines, Listing, Shown
from fairwarning.common.escape import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_PIPE_WIDTH = 10_000
"""The assumed width of a pipe. It is large, so rows are not cut and grep finds whole ids."""


WIDTH_MAX = 100  # Wider lines are hard to read, however wide the terminal is.


def echo_json(body: Any) -> None:
    click.echo(json.dumps(body, ensure_ascii=False))


def make_console(
    *, err: bool = False, width: int | None = None, is_capped: bool = False
) -> "Console":
    """Return a console. `is_capped` is for tables; a live screen must follow the window."""
    from rich.console import Console  # noqa: PLC0415  a command with --json never needs it

    stream = sys.stderr if err else sys.stdout
    if width is None and not stream.isatty():
        width = _PIPE_WIDTH
    elif width is None and is_capped:
        width = min(Console().width, WIDTH_MAX)
    return Console(
        file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


def draw(console: "Console", *shown: Shown) -> None:
    for number, each in enumerate(shown):
        if number and isinstance(shown[number - 1], Listing | Card):
            console.print()
        match each:
            case Listing():
                _draw_listing(console, each)
            case Card():
                _draw_card(console, each)
            case Lines():
                _draw_lines(console, each)


def text_of(*cells: Cell) -> "Text":
    """Return the cells as one rich text, with control characters escaped."""
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble(*((clean(cell.text), cell.style) for cell in cells))


def _draw_lines(console: "Console", lines: Lines) -> None:
    for cells in lines.lines:
        console.print(text_of(*cells), soft_wrap=True)


def _draw_card(console: "Console", card: Card) -> None:
    console.print(text_of(card.title), soft_wrap=True)
    facts = [(name, cell) for name, cell in card.facts if cell.text]
    width = max((len(name) for name, _ in facts), default=0)
    for name, cell in facts:
        console.print(text_of(Cell(f"  {name:<{width}}  ", "dim"), cell), soft_wrap=True)


def _draw_listing(console: "Console", listing: Listing) -> None:
    from rich.measure import Measurement  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    if not listing.rows:
        console.print(text_of(Cell(listing.empty)), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in listing.columns:
        table.add_column(column.title, no_wrap=column.whole, overflow="fold")
    for row in listing.rows:
        table.add_row(*(text_of(cell) for cell in row))
    needed = Measurement.get(console, console.options, table).minimum
    if needed <= console.width and not _is_cut(console, listing):
        console.print(table)
    else:
        _draw_blocks(console, listing)


def _is_cut(console: "Console", listing: Listing) -> bool:
    """Return whether columns that must stay whole leave too little width for the others."""
    whole = sum(
        max(len(row[number].text) for row in listing.rows) + 2
        for number, column in enumerate(listing.columns)
        if column.whole
    )
    others = sum(not column.whole for column in listing.columns)
    return whole + others * 8 > console.width


def _draw_blocks(console: "Console", listing: Listing) -> None:
    """Draw each row as a block, for terminals that are too narrow for the table."""
    for row in listing.rows:
        facts = tuple(
            (column.title.lower(), cell)
            for column, cell in zip(listing.columns[1:], row[1:], strict=True)
        )
        _draw_card(console, Card(title=row[0], facts=facts))
