"""Divides the rows of a long table into pages. The query parameter `from` names the first row."""

from dataclasses import dataclass
from urllib.parse import urlencode

from fairwarning.portal.page_context import PageContext


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPage:
    first: int
    """The number of the first row on this page, counted from 0."""
    last: int
    """The number of the row after the last one on this page."""
    count: int
    """How many rows there are on all pages."""
    before: str
    """The query of the page before; empty if there is none."""
    after: str


def row_page(context: PageContext, count: int, size: int, *, shows: int = 0) -> RowPage:
    """Return the page that the query asks for. Without `from`, it has the row `shows`."""
    wanted = context.query.get("from", "")
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 8:
        first = min(int(wanted), max(0, count - 1))
    else:
        first = shows - shows % size
    return RowPage(
        first=first,
        last=min(first + size, count),
        count=count,
        before="?" + urlencode({"from": max(0, first - size)}) if first else "",
        after="?" + urlencode({"from": first + size}) if first + size < count else "",
    )
