"""The search page. It redirects to an exact match, and otherwise lists all matches."""

import re
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.engine.scope_view import Member
from fairwarning.operator_api.schemas import Event, Events
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

FOUND_MAX = 20
EVENTS_SEARCHED = 500
TEXT_CHARS_MAX = 200
_EVENT_ID = re.compile(r"[0-9A-Fa-f]{4,8}(-[0-9A-Fa-f-]*)?\Z")


async def search(context: PageContext) -> Response:
    text = context.query.get("q", "").strip()[:TEXT_CHARS_MAX]
    views = context.control.views
    exact = views.by_name(text)
    if len(exact) == 1:
        return context.go(_place_of(exact[0]))
    events = await _events(context, text)
    scopes = views.search(text)[:FOUND_MAX] if text else []
    named = [id for id in scopes if text in id.split("/")[-2:]]
    if not exact and len(named) == 1:
        return context.go(f"/fleet/{quote(named[0])}")
    if not exact and not scopes and len(events) == 1:
        return context.go(f"/events/{events[0].id}")
    names = await views.find_names(text, FOUND_MAX) if text else []
    members = [each for name in names for each in views.by_name(name)][:FOUND_MAX]
    return await context.show(
        "search.html",
        text=text,
        instances=[(each.name, each.view.scope_id, _place_of(each)) for each in members],
        scopes=scopes,
        events=events,
        found_max=FOUND_MAX,
    )


async def _events(context: PageContext, text: str) -> list[Event]:
    """Return the newest events whose id begins with the text."""
    if not _EVENT_ID.match(text):
        return []
    page: Events = await context.ask("GET", "/events", query={"limit": EVENTS_SEARCHED})
    return [each for each in page.events if each.id.startswith(text.upper())][:FOUND_MAX]


def _place_of(member: Member) -> str:
    """Return the URL of the instance's row, which is then marked."""
    name = quote(member.name)
    return f"/fleet/{quote(member.view.scope_id)}?instance={name}#instance-{name}"


PAGES = (Page("/search", search),)
