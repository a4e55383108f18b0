"""What a command shows to people, as plain data: no colour codes, no widths, no terminal.

`tables/` makes these from the API's JSON; `output.py` draws them. So what is shown can be
tested without a terminal, and a command that only prints JSON never loads the drawing.
"""

from msgspec import Struct


class Cell(Struct, frozen=True):
    text: str
    style: str = ""


class Column(Struct, frozen=True):
    title: str
    whole: bool = False
    """Never broken or cut off, however narrow the terminal: an id that somebody will copy."""


class Listing(Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str
    """What to say when there are no rows."""


class Card(Struct, frozen=True, kw_only=True):
    """One thing and what is known of it. A fact without text is left out."""

    title: Cell
    facts: tuple[tuple[str, Cell], ...]


class Lines(Struct, frozen=True, kw_only=True):
    lines: tuple[tuple[Cell, ...], ...]


Shown = Listing | Card | Lines


def line(text: str, style: str = "") -> Lines:
    return Lines(lines=((Cell(text, style),),))
