"""The page that lists all events, with filters, and the approval of several at once."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from fairwarning.core.model import EventType, Phase, Source
from fairwarning.core.refusals import Refused
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.schemas import Event, Events
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.time_zones import ZONE, zone_of

ROWS = 50
CHOSEN_MAX = 200
"""How many events one form approves. A page shows fewer."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "phase": tuple(Phase),
    "type": tuple(EventType),
    "source": tuple(Source),
}
FILTERS = (*CHOICES, "scope", "instance")


async def events(context: PageContext) -> Response:
    chosen = {name: context.query[name].strip() for name in FILTERS if context.query.get(name)}
    problem, found = "", Events(events=[], next=None)
    try:
        found = await context.ask(
            "GET", "/events", query={**chosen, "after": context.query.get("after"), "limit": ROWS}
        )
    except Problem as refused:
        # For an unknown or ambiguous name, the page explains the problem above an empty list.
        if refused.status >= 500:
            raise
        problem = refused.detail
    return await context.show(
        "events.html",
        events=found.events,
        next=_url({**chosen, "after": found.next}) if found.next else "",
        first=_url(chosen),
        is_later="after" in context.query,
        chosen=chosen,
        choices=CHOICES,
        problem=problem,
    )


async def preview_approval(context: PageContext) -> Response:
    """Show which events would be approved, and who is affected, before anything is done."""
    found = await _chosen(context)
    if not found:
        return context.back(said=context.t("events.none-chosen"), failed=True)
    zone = zone_of(context.request.cookies.get(ZONE))
    return await context.show(
        "approve_chosen.html",
        events=found,
        instances=len({(each.scope, name) for each in found for name in each.resources}),
        zone=zone,
    )


async def approve_chosen(context: PageContext) -> Response:
    """Approve the events one by one. An event that ended meanwhile does not stop the others."""
    done, refused = 0, []
    for id in _ids(context):
        try:
            await context.ask("POST", "/events/{id}/approve", names={"id": id})
            done += 1
        except (Problem, Refused) as wrong:
            text = wrong.detail if isinstance(wrong, Problem) else wrong.message
            refused.append(context.t("events.not-approved", id=id[:8], why=text))
    said = context.t("events.approved-chosen", count=done)
    return context.go("/", said=" ".join([said, *refused]), failed=bool(refused))


async def _chosen(context: PageContext) -> list[Event]:
    asked = [context.ask("GET", "/events/{id}", names={"id": id}) for id in _ids(context)]
    found: list[Event] = [await each for each in asked]
    return [each for each in found if each.phase is Phase.SCHEDULED]


def _ids(context: PageContext) -> list[str]:
    return list(dict.fromkeys(context.lists.get("event", ())))[:CHOSEN_MAX]


def _url(query: Mapping[str, str]) -> str:
    return f"/events?{urlencode(query)}" if query else "/events"


PAGES = (
    Page("/events", events),
    Page("/events/chosen/preview", preview_approval, sends=True),
    Page("/events/chosen/approve", approve_chosen, sends=True),
)
