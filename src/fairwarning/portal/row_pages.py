"""Divides the rows of a long table into pages, and makes the rows of a table of instances.

The query parameter `from` names the first row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Phase, Power, Scope
from fairwarning.engine.document_views import Views
from fairwarning.operator_api import schemas
from fairwarning.operator_api.to_schema import instance_of
from fairwarning.portal.page_context import PageContext

INSTANCES_SHOWN = 25  # A row has 14 elements, and a page is to have at most 600.


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


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRows:
    rows: Sequence[tuple[str, schemas.Instance]]
    """The instances, each with the id of its scope."""
    page: RowPage
    marked: str
    """The name of the instance whose row is marked; empty if there is none."""


def instance_rows(context: PageContext, scopes: Sequence[Scope], views: Views) -> InstanceRows:
    """Return the page that the query asks for: `from` is a row, `instance` a name to be shown."""
    everyone = sorted(((scope, each) for scope in scopes for each in scope.roster.live), key=_order)
    marked = context.query.get("instance", "")
    row = next((at for at, (_, each) in enumerate(everyone) if each.name == marked), 0)
    page = row_page(context, len(everyone), INSTANCES_SHOWN, shows=row)
    shown = everyone[page.first : page.last]
    return InstanceRows(
        rows=[(scope.id, instance_of(scope, each, views)) for scope, each in shown],
        page=page,
        marked=marked,
    )


def _order(member: tuple[Scope, Instance]) -> tuple[int, str, int, str]:
    """Return a sort key that puts `web_2` before `web_10`."""
    scope, instance = member
    number = number_of(scope.roster, instance.name)
    if number is not None:
        return number, instance.name, 0, ""
    start, _, end = instance.name.replace("-", "_").rpartition("_")
    is_number = end.isascii() and end.isdigit() and len(end) < 10
    return (0, start, int(end), "") if is_number else (0, instance.name, -1, "")


def state_of(instance: schemas.Instance) -> str:
    """Return the most important state of the instance, which is also the name of its colour."""
    phases = {each.phase for each in instance.pending}
    if Phase.STARTED in phases:
        return "started"
    if Phase.SCHEDULED in phases:
        return "scheduled"
    return "running" if instance.power == Power.RUNNING else "down"
