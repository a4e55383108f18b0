"""The overview page: events that need a decision, that are under way, and that are planned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.model import Event, EventType, Phase, ScopeId
from fairwarning.engine.protocols import Choice
from fairwarning.operator_api import schemas
from fairwarning.operator_api.to_schema import event_of
from fairwarning.portal import shell_commands, timeline
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.pages.events import approving
from fairwarning.portal.time_zones import ZONE, local, zone_of
from fairwarning.portal.timeline import Zoom

ROWS_MAX = 8  # A row has 14 elements, and the page is to have at most 600.
PENDING_MAX = 1_000  # The page shows fewer; this bounds the time that it takes.
ENDED_MAX = 200
"""How many ended events are read. The timeline shows those of the past day."""
PENDING = (Phase.SCHEDULED, Phase.STARTED)
ENDED = (Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED)
Counts = Mapping[tuple[EventType, Phase], int]
Planned = tuple[ScopeId, Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The events of one table."""

    rows: Sequence[schemas.Event]
    """The first events; at most `ROWS_MAX`."""
    count: int

    @property
    def left_out(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGroups:
    """The pending events, grouped by what a person can do about them."""

    unapproved: Group
    """Announced events that nobody has approved, the soonest first."""
    under_way: Group
    """Events that have started, then those that are approved or not announced."""


async def overview(context: PageContext) -> Response:
    now = context.control.clock.now()
    zone = zone_of(context.request.cookies.get(ZONE))
    # The events of the store and not of the API, because only a few of them are shown.
    pending = await context.control.store.events(Choice(phases=PENDING), limit=PENDING_MAX)
    counts = await _counts(context)
    has_ended = any(phase in ENDED for _, phase in counts)
    ended = (
        await context.control.store.events(Choice(phases=ENDED), limit=ENDED_MAX)
        if has_ended
        else []
    )
    return await context.show(
        "overview.html",
        groups=group_events(pending),
        is_all=len(pending) < PENDING_MAX,
        chart=timeline.chart([*pending, *ended], now, zone, _zoom(context)),
        zooms=list(Zoom),
        timeline=timeline,
        zone=zone,
        local=local,
        counts=counts,
        types=[type for type in EventType if any((type, phase) in counts for phase in Phase)],
        phases=list(Phase),
        total={phase: sum(n for (_, p), n in counts.items() if p is phase) for phase in Phase},
        ask=lambda event: approving(context, event, zone),
        start=None if pending else await _start(context),
    )


def _zoom(context: PageContext) -> Zoom | None:
    wanted = context.query.get("zoom")
    return Zoom(wanted) if wanted in set(Zoom) else None


def group_events(pending: Sequence[Planned]) -> EventGroups:
    by_time = sorted(pending, key=lambda each: (each[1].not_before_ms, each[1].id))
    scheduled = [each for each in by_time if each[1].phase is Phase.SCHEDULED]
    started = [each for each in by_time if each[1].phase is Phase.STARTED]
    is_settled = [bool(event.approvals) or not event.announced for _, event in scheduled]
    approved = [each for each, is_it in zip(scheduled, is_settled, strict=True) if is_it]
    unapproved = [each for each, is_it in zip(scheduled, is_settled, strict=True) if not is_it]
    return EventGroups(unapproved=_group(unapproved), under_way=_group([*started, *approved]))


def _group(events: Sequence[Planned]) -> Group:
    return Group(rows=[event_of(*each) for each in events[:ROWS_MAX]], count=len(events))


async def _counts(context: PageContext) -> Counts:
    found = await context.ask("GET", "/event-counts")
    return {(each.type, each.phase): each.count for each in found.counts}


async def _start(context: PageContext) -> Mapping[str, Any]:
    """Return the values of the first steps for a new user, such as commands to paste."""
    fleet = await context.ask("GET", "/fleet", query={"limit": 1})
    scope: schemas.Scope | None = fleet.scopes[0] if fleet.scopes else None
    name = scope.instances[0].name if scope is not None and scope.instances else ""
    url, host = base_of(context), context.request.url.hostname or "localhost"
    urls = context.control.metadata_urls
    return {
        "machine": name,
        "can_play": shell_commands.can_play(urls),
        "apply": shell_commands.program(url, "fleet", "apply", "fleet.toml"),
        "curl": shell_commands.curl(urls, host, name, NEWEST.name),
        "schedule": shell_commands.program(url, "schedule", "Reboot", name),
        "watch": shell_commands.program(url, "watch"),
    }


def base_of(context: PageContext) -> str:
    """Return the URL at which the reader reaches this server."""
    own = f"{context.request.url.scheme}://{context.request.url.netloc}"
    return context.control.public_url or own


PAGES = (Page("/", overview),)
