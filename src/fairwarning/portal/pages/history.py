"""The page of the history, newest entry first, with filters and a download as CSV."""

import csv
import io
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.layout import HEADERS
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.time_zones import ZONE, with_local_times, zone_of

ENTRIES_SHOWN = 40  # A row has ten elements, and a page is to have at most 600.
CSV_PAGE = 500  # The largest page of the API.
CSV_ROWS_MAX = 100_000  # Spreadsheets become slow with more.
COLUMNS = ("at", "scope", "event", "kind", "by", "why", "text")


async def history(context: PageContext) -> Response:
    found = await _page(context, context.query.get("after"), ENTRIES_SHOWN)
    zone = zone_of(context.request.cookies.get(ZONE))
    return await context.show(
        "history.html",
        entries=found.entries,
        next=found.next,
        scope=context.query.get("scope", ""),
        event=context.query.get("event", ""),
        after=context.query.get("after"),
        said_of=lambda entry: with_local_times(entry.text, zone),
    )


async def as_csv(context: PageContext) -> Response:
    # Read the first page before the answer begins, so that a wrong filter still gets an error page.
    first = await _page(context, None, CSV_PAGE)
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="history.csv"'}
    return StreamingResponse(_rows(context, first), media_type="text/csv; charset=utf-8",
                             headers=headers)  # fmt: skip


async def _rows(context: PageContext, found: schemas.Entries) -> AsyncIterator[str]:
    yield _line(COLUMNS)
    count = 0
    while True:
        for entry in found.entries:
            yield _line([str(getattr(entry, name) or "") for name in COLUMNS])
        count += len(found.entries)
        if found.next is None or count >= CSV_ROWS_MAX:
            return
        found = await _page(context, found.next, CSV_PAGE)


async def _page(context: PageContext, after: str | None, limit: int) -> schemas.Entries:
    query = context.query
    found: schemas.Entries = await context.ask(
        "GET",
        "/history",
        query={"scope": query.get("scope"), "event": query.get("event"), "after": after,
               "limit": limit},
    )  # fmt: skip
    return found


def _line(values: tuple[str, ...] | list[str]) -> str:
    """Return a line of CSV. A quote before a formula prevents a spreadsheet from running it."""
    safe = [f"'{each}" if each[:1] in ("=", "+", "-", "@", "\t", "\r") else each for each in values]
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(safe)
    return out.getvalue()


PAGES = (Page("/history", history), Page("/history.csv", as_csv))
