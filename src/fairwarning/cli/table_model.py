"""What a command shows to people, as plain data without colour codes or widths.

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
    """Whether the column is never cut, however narrow the terminal: an id to copy."""


class Listing(Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str
    """The text if there are no rows."""


class Card(Struct, frozen=True, kw_only=True):
    """One thing with its facts; a fact without text is left out."""

    title: Cell
    facts: tuple[tuple[str, Cell], ...]


class Lines(Struct, frozen=True, kw_only=True):
    lines: tuple[tuple[Cell, ...], ...]


Shown = Listing | Card | Lines


def line(text: str, style: str = "") -> Lines:
    return Lines(lines=((Cell(text, style),),))
