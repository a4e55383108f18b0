"""The search page. It redirects to an exact match, and otherwise lists all matches."""

import re
from urllib.parse import quote

from starlette.responses import Response

from fairwarning.common.loop_slices import filter_in_slices
from fairwarning.core.model import ScopeKind
from fairwarning.core.scope_names import resource_of
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
    resources = await _resources(context, text)
    named = [id for id in resources if id.endswith(f"/{text}")]
    if not exact and len(named) == 1:
        return context.go(_page_of(named[0]))
    if not exact and not resources and len(events) == 1:
        return context.go(f"/events/{events[0].id}")
    names = await views.find_names(text, FOUND_MAX) if text else []
    members = [each for name in names for each in views.by_name(name)][:FOUND_MAX]
    return await context.show(
        "search.html",
        text=text,
        instances=[(each.name, each.view.scope_id, _place_of(each)) for each in members],
        resources=[(id, _page_of(id)) for id in resources[:FOUND_MAX]],
        events=events,
        found_max=FOUND_MAX,
    )


async def _resources(context: PageContext, text: str) -> list[str]:
    """Return the ids of the VMs and sets that have the text in their id."""
    if not text:
        return []
    wanted = text.lower()
    known = await context.control.views.resources()
    return await filter_in_slices(lambda each: wanted in each.lower(), known)


async def _events(context: PageContext, text: str) -> list[Event]:
    """Return the newest events whose id begins with the text."""
    if not _EVENT_ID.match(text):
        return []
    page: Events = await context.ask("GET", "/events", query={"limit": EVENTS_SEARCHED})
    return [each for each in page.events if each.id.startswith(text.upper())][:FOUND_MAX]


def _place_of(member: Member) -> str:
    """Return the URL of the instance's row, which is then marked."""
    name = quote(member.name)
    page = _page_of(resource_of(member.view.scope_id))
    return f"{page}?instance={name}#instance-{name}"


def _page_of(resource_id: str) -> str:
    folder = "scale-sets" if resource_id.split("/")[2] == ScopeKind.SCALE_SET else "fleet"
    return f"/{folder}/{quote(resource_id)}"


PAGES = (Page("/search", search),)
