"""The overview page: events that need a decision, that are under way, and that are planned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.model import EventType, Phase
from fairwarning.operator_api.schemas import Event, Scope
from fairwarning.portal import shell_commands, timeline
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.pages.events import approving
from fairwarning.portal.time_zones import ZONE, local, zone_of
from fairwarning.portal.timeline import Zoom

ROWS_MAX = 15  # The most urgent ones fit on a screen.
PAGE = 500  # The largest page of the API.
PENDING_MAX = 1_000  # The page shows fewer; this bounds the time that it takes.
ENDED_MAX = 500
"""How many ended events are read. The timeline shows those of the past day."""
PENDING = (Phase.SCHEDULED, Phase.STARTED)
ENDED = (Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED)
Counts = Mapping[tuple[EventType, Phase], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGroups:
    """The pending events, grouped by what a person can do about them."""

    unapproved: list[Event]
    """Announced events that nobody has approved, the soonest first."""
    approved: list[Event]
    """Scheduled events that are approved, or that are not announced, the soonest first."""
    started: list[Event]


async def overview(context: PageContext) -> Response:
    now = context.control.clock.now()
    zone = zone_of(context.request.cookies.get(ZONE))
    pending = await _events(context, PENDING, PENDING_MAX)
    counts = await _counts(context)
    has_ended = any(phase in ENDED for _, phase in counts)
    ended = await _events(context, ENDED, ENDED_MAX) if has_ended else []
    groups = group_events(pending)
    return await context.show(
        "overview.html",
        groups=groups,
        rows_max=ROWS_MAX,
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


def group_events(pending: Sequence[Event]) -> EventGroups:
    by_time = sorted(pending, key=lambda each: (each.not_before, each.id))
    scheduled = [each for each in by_time if each.phase is Phase.SCHEDULED]
    return EventGroups(
        unapproved=[each for each in scheduled if each.announced and not each.approvals],
        approved=[each for each in scheduled if each.approvals or not each.announced],
        started=[each for each in by_time if each.phase is Phase.STARTED],
    )


async def _events(context: PageContext, phases: Sequence[Phase], most: int) -> list[Event]:
    found: list[Event] = []
    after: str | None = None
    while len(found) < most:
        query = {"phase": list(phases), "limit": PAGE, "after": after}
        page = await context.ask("GET", "/events", query=query)
        found += page.events
        after = page.next
        if after is None:
            break
    return found


async def _counts(context: PageContext) -> Counts:
    found = await context.ask("GET", "/event-counts")
    return {(each.type, each.phase): each.count for each in found.counts}


async def _start(context: PageContext) -> Mapping[str, Any]:
    """Return the values of the first steps for a new user, such as commands to paste."""
    fleet = await context.ask("GET", "/fleet", query={"limit": 1})
    scope: Scope | None = fleet.scopes[0] if fleet.scopes else None
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
