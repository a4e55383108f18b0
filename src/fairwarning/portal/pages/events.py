"""The page that lists all events, with filters."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from fairwarning.core.model import EventType, Phase, Source
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.schemas import Events
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

ROWS = 50  # A page that a person can look through.
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
    return context.show(
        "events.html",
        events=found.events,
        next=_url({**chosen, "after": found.next}) if found.next else "",
        first=_url(chosen),
        is_later="after" in context.query,
        chosen=chosen,
        choices=CHOICES,
        problem=problem,
    )


def _url(query: Mapping[str, str]) -> str:
    return f"/events?{urlencode(query)}" if query else "/events"


PAGES = (Page("/events", events),)
