"""Chooses the rows of a table of instances, and the state that is shown for each instance."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Phase, Power, Scope
from fairwarning.engine.document_views import Views
from fairwarning.operator_api import schemas
from fairwarning.operator_api.to_schema import instance_of
from fairwarning.portal.page_context import PageContext

ROWS = 25  # A row has 14 elements, and a page is to have at most 600.


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRows:
    rows: Sequence[tuple[str, schemas.Instance]]
    """The instances, each with the id of its scope."""
    first: int
    """The number of the first row, counted from 0."""
    count: int
    """How many instances there are on all pages."""
    before: str
    """The query of the page before; empty if there is none."""
    after: str
    marked: str
    """The name of the instance whose row is marked; empty if there is none."""

    @property
    def last(self) -> int:
        return self.first + len(self.rows)


def instance_rows(context: PageContext, scopes: Sequence[Scope], views: Views) -> InstanceRows:
    """Return the page that the query asks for: `from` is a row, `instance` a name to be shown."""
    everyone = sorted(((scope, each) for scope in scopes for each in scope.roster.live), key=_order)
    marked = context.query.get("instance", "")
    first = _asked_row(context, everyone, marked)
    page = everyone[first : first + ROWS]
    return InstanceRows(
        rows=[(scope.id, instance_of(scope, each, views)) for scope, each in page],
        first=first,
        count=len(everyone),
        before="?" + urlencode({"from": max(0, first - ROWS)}) if first else "",
        after="?" + urlencode({"from": first + ROWS}) if first + ROWS < len(everyone) else "",
        marked=marked,
    )


def _asked_row(
    context: PageContext, everyone: Sequence[tuple[Scope, Instance]], marked: str
) -> int:
    wanted = context.query.get("from", "")
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 8:
        return min(int(wanted), max(0, len(everyone) - 1))
    row = next((at for at, (_, each) in enumerate(everyone) if each.name == marked), 0)
    return row - row % ROWS


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
