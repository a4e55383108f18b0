"""The route of resources: one row for each VM and each set, whatever its placement groups are.

A page is cheap also in a large fleet: the list of resources is in memory, and only the scopes of
those on the page are read.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta

from fairwarning.common.durations import format_iso_duration
from fairwarning.common.loop_slices import filter_in_slices
from fairwarning.core.model import Event, InstanceName, Phase, ScopeId, ScopeKind
from fairwarning.core.refusals import Refused
from fairwarning.core.resources import Orchestration
from fairwarning.core.scope_names import resource_of
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import After, In, Limit, Out
from fairwarning.operator_api.to_schema import orchestration_of

NAMES_SEARCHED = 500  # A search that finds more instances is too short to be of use.


class ResourcesQuery(In):
    kind: ScopeKind | None = None
    search: Annotated[str, Meta(max_length=200)] = ""
    """A part of the resource's id, or of the name of one of its instances."""
    after: After | None = None
    limit: Limit = 50


class ResourceOut(Out):
    id: str
    """The id of the scope. A scale set has this id without the number of the placement group."""
    kind: ScopeKind
    name: str
    subscription: str
    resource_group: str
    location: str
    test: bool
    orchestration: Orchestration | None
    placement_groups: list[str]
    """The ids of the scopes that have instances."""
    instances: int
    polling: int
    """How many instances have polled this server since it started."""
    scheduled: int
    """How many instances have an event that has not started."""
    started: int
    """How many instances have an event that has started."""
    pending_events: int
    terminate_notice: str | None


class Resources(Out):
    resources: list[ResourceOut]
    next: str | None


async def list_resources(control: Control, call: Call[ResourcesQuery, None]) -> Resources:
    query = call.query
    found = await control.views.resources()
    ids: Sequence[str] = list(found)
    if query.kind is not None:
        ids = await filter_in_slices(lambda each: each.split("/")[2] == query.kind, found)
    if query.search:
        ids = await _search(control, ids, query.search)
    first = bisect_right(ids, query.after) if query.after else 0
    page = ids[first : first + query.limit]
    rows = [await _row(control, id, found[id]) for id in page]
    return Resources(
        resources=[row for row in rows if row is not None],
        next=page[-1] if first + query.limit < len(ids) else None,
    )


async def _search(control: Control, ids: Sequence[str], text: str) -> list[str]:
    wanted = text.lower()
    names = await control.views.find_names(text, NAMES_SEARCHED)
    owners = {
        resource_of(each.view.scope_id) for name in names for each in control.views.by_name(name)
    }
    return await filter_in_slices(lambda each: wanted in each.lower() or each in owners, ids)


async def _row(control: Control, id: str, groups: Sequence[ScopeId]) -> ResourceOut | None:
    """Return the row, or None if the resource was removed meanwhile."""
    try:
        scopes = [await control.store.read(each) for each in groups]
    except Refused:
        return None
    roster = scopes[0].roster
    notice_ms = roster.model.terminate_notice_ms
    members = [each for group in groups for each in control.views.members(group)]
    pending = [(scope.id, event) for scope in scopes for event in scope.unfinished]
    started = _instances(pending, Phase.STARTED)
    return ResourceOut(
        id=id,
        kind=roster.kind,
        name=roster.resource,
        subscription=roster.subscription,
        resource_group=roster.resource_group,
        location=roster.location,
        test=roster.test,
        orchestration=orchestration_of(roster),
        placement_groups=list(groups),
        instances=len(members),
        polling=sum(each.polls > 0 for each in members),
        scheduled=len(_instances(pending, Phase.SCHEDULED) - started),
        started=len(started),
        pending_events=len(pending),
        terminate_notice=None if notice_ms is None else format_iso_duration(notice_ms),
    )


def _instances(
    pending: Iterable[tuple[ScopeId, Event]], phase: Phase
) -> set[tuple[ScopeId, InstanceName]]:
    """Return the instances that have an event in this phase."""
    events = ((id, event) for id, event in pending if event.phase is phase)
    return {(id, name) for id, event in events for name in event.resources}


ROUTES = (
    Route(method="GET", path="/resources", summary="VMs and sets, one row for each",
          role=Role.VIEWER, handle=list_resources, query=ResourcesQuery, answer=Resources),
)  # fmt: skip
