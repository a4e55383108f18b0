"""What a command shows to people, as plain data without colour codes or widths.

`tables/` makes this data from the API's JSON, and `output.py` draws it. So tests need no
terminal, and a command that only prints JSON does not load `rich`.
"""

from msgspec import Struct


class Cell(Struct, frozen=True):
    text: str
    style: str = ""


class Column(Struct, frozen=True):
    title: str
    whole: bool = False
    """Whether the column is never cut, because it holds ids that people copy."""
    wraps: bool = False
    """Whether a long text goes on in the next line. Otherwise it is shortened with `…`."""


class Listing(Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str
    """The text that is shown if there are no rows."""
    note: str = ""
    """A line below the table, such as the time zone of its times."""


class Card(Struct, frozen=True, kw_only=True):
    """One object with its facts. A fact without text is not shown."""

    title: Cell
    facts: tuple[tuple[str, Cell], ...]


class Lines(Struct, frozen=True, kw_only=True):
    lines: tuple[tuple[Cell, ...], ...]
    breaks: bool = True
    """Whether a line that is too long is broken between words."""


Shown = Listing | Card | Lines


def line(text: str, style: str = "") -> Lines:
    return Lines(lines=((Cell(text, style),),))


def hint(text: str, style: str = "") -> Lines:
    """Return a line that ends with a command. It is not broken, so that people can copy it."""
    return Lines(lines=((Cell(text, style),),), breaks=False)
