"""Draws tables, cards and lines on a terminal, or as plain text into a pipe."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fairwarning.cli.table_model import Card, Cell, Lines, Listing, Shown
from fairwarning.common.escape import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_MAX = 100  # Wider lines are hard to read, however wide the terminal is.
_HANGING = 4  # How far the further lines of a broken line are indented.
_ROOM_MIN = 20  # On a terminal that is narrower still, the terminal breaks the lines.
_PIPE_WIDTH = 10_000  # A line that is written to a pipe is not broken.


def echo_json(body: Any) -> None:
    click.echo(json.dumps(body, ensure_ascii=False))


def make_console(
    *, err: bool = False, width: int | None = None, is_capped: bool = False
) -> "Console":
    """Return a console.

    `is_capped` is for tables, which are at most WIDTH_MAX wide on a terminal and in a pipe. A live
    screen must follow the window.
    """
    from rich.console import Console  # noqa: PLC0415  a command with --json never needs it

    stream = sys.stderr if err else sys.stdout
    if width is None and not stream.isatty():
        width = WIDTH_MAX if is_capped else _PIPE_WIDTH
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
        if lines.breaks:
            _draw_broken(console, Cell(""), cells)
        else:
            console.print(text_of(*cells), soft_wrap=True)


def _draw_card(console: "Console", card: Card) -> None:
    _draw_broken(console, Cell(""), (card.title,))
    facts = [(name, cell) for name, cell in card.facts if cell.text]
    width = max((len(name) for name, _ in facts), default=0)
    for name, cell in facts:
        _draw_broken(console, Cell(f"  {name:<{width}}  ", "dim"), (cell,))


def _draw_broken(console: "Console", label: Cell, cells: Sequence[Cell]) -> None:
    """Draw the cells after the label, in lines that are broken between words."""
    from fairwarning.cli.table_layout import break_offsets  # noqa: PLC0415

    text = text_of(*cells)
    indent = len(label.text)
    # Further lines are indented too, so less fits into them.
    room = max(console.width - (indent or _HANGING), _ROOM_MIN)
    is_one_line = not indent and text.cell_len <= console.width and "\n" not in text.plain
    offsets = [] if is_one_line else break_offsets(text.plain, room)
    for number, each in enumerate(text.divide(offsets)):
        each.rstrip()
        before = label if number == 0 else Cell(" " * (indent or _HANGING))
        console.print(text_of(before).append_text(each), soft_wrap=True)


def _draw_listing(console: "Console", listing: Listing) -> None:
    from rich.table import Table  # noqa: PLC0415

    from fairwarning.cli.table_layout import GAP, column_widths, shorten  # noqa: PLC0415

    if not listing.rows:
        console.print(text_of(Cell(listing.empty)), soft_wrap=True)
        return
    widths = column_widths(listing, console.width)
    if widths is None:
        _draw_blocks(console, listing)
    else:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for column, width in zip(listing.columns, widths, strict=True):
            table.add_column(column.title, no_wrap=not column.wraps, width=width, overflow="fold")
        for row in listing.rows:
            table.add_row(
                *(
                    text_of(cell if column.wraps else Cell(shorten(cell.text, width), cell.style))
                    for cell, column, width in zip(row, listing.columns, widths, strict=True)
                )
            )
        console.print(table)
    if listing.note:
        console.print(text_of(Cell(listing.note, "dim")), soft_wrap=True)


def _draw_blocks(console: "Console", listing: Listing) -> None:
    """Draw each row as a block, for terminals that are too narrow for the table."""
    for row in listing.rows:
        facts = tuple(
            (column.title.lower(), cell)
            for column, cell in zip(listing.columns[1:], row[1:], strict=True)
        )
        _draw_card(console, Card(title=row[0], facts=facts))
