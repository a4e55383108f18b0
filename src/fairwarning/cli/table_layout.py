"""Decides how wide the columns of a table are, and shortens the texts that do not fit.

Widths are those on a terminal, where a Chinese character is two columns wide.
"""

import re

from rich.cells import cell_len, set_cell_size

from fairwarning.cli.table_model import Column, Listing

GAP = 2  # The spaces between two columns.
_SHORT_MIN = 8  # Of a name that is cut further than this, nothing can be read.
_WRAPPED_MIN = 24  # Sentences in a narrower column become a ladder of words.
_WRAPS = 2  # A sentence in two lines is better than a shortened name.
_ELLIPSIS = "…"


def column_widths(listing: Listing, width: int) -> list[int] | None:
    """Return the width of each column, so that the table is at most `width` columns wide.

    Whole columns keep their width, and the widest of the others is made narrower first. One
    that wraps counts twice. Returns None if there is not enough room.
    """
    widths = [_natural(listing, number) for number in range(len(listing.columns))]
    least = [*map(_least, listing.columns, widths)]
    room = width - GAP * (len(widths) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max(
            (number for number, wide in enumerate(widths) if wide > least[number]),
            key=lambda number: widths[number] * (_WRAPS if listing.columns[number].wraps else 1),
        )
        widths[widest] -= 1
    return widths


def _natural(listing: Listing, number: int) -> int:
    texts = (row[number].text for row in listing.rows)
    return max(len(listing.columns[number].title), *map(cell_len, texts))


def _least(column: Column, natural: int) -> int:
    if column.whole:
        return natural
    least = _WRAPPED_MIN if column.wraps else _SHORT_MIN
    return min(natural, max(len(column.title), least))


def shorten(text: str, width: int) -> str:
    """Return the text, cut to the width with `…` in the place of what is missing.

    A list or a sentence loses its end. A single name loses its middle, because names often
    differ only in their last characters.
    """
    if cell_len(text) <= width:
        return text
    if " " in text:
        return set_cell_size(text, width - 1).rstrip() + _ELLIPSIS
    tail = (width - 1) // 2
    return set_cell_size(text, width - 1 - tail) + _ELLIPSIS + _tail(text, tail)


def _tail(text: str, width: int) -> str:
    return set_cell_size(text[::-1], width)[::-1]


def break_offsets(text: str, width: int) -> list[int]:
    """Return where to break the text, so that its lines are at most `width` wide.

    It is broken before words only. A word that is wider than `width` stays whole, because it is an
    id or an address that people copy.
    """
    offsets: list[int] = []
    line_began = 0
    for word in re.finditer(r"\S+", text):
        gap = text[line_began : word.start()]
        is_too_wide = cell_len(text[line_began : word.end()]) > width and gap.strip()
        if is_too_wide or "\n" in gap:
            line_began = word.start()
            offsets.append(line_began)
    return offsets
