"""The pages of the fleet: all resources, one row each, and one scope with its instances."""

from starlette.responses import Response

from fairwarning.operator_api import schemas
from fairwarning.operator_api.resolve_names import find_scope
from fairwarning.operator_api.routes.resources import Resources
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.row_pages import instance_rows

RESOURCES_SHOWN = 25  # A row has 13 elements, and a page is to have at most 600.
EVENTS_SHOWN = 10  # The recent ones; the list of events has all.


async def fleet(context: PageContext) -> Response:
    query = context.query
    search = query.get("search", "").strip()
    found: Resources = await context.ask(
        "GET",
        "/resources",
        query={"search": search or None, "after": query.get("after"), "limit": RESOURCES_SHOWN},
    )
    return await context.show(
        "fleet.html",
        resources=found.resources,
        search=search,
        after=query.get("after"),
        next=found.next,
        summary=await context.control.views.summary(),
    )


async def scope(context: PageContext) -> Response:
    found: schemas.Scope = await context.ask(
        "GET", "/scopes/{scope:path}", names={"scope": context.names["scope"]}
    )
    events: schemas.Events = await context.ask(
        "GET", "/events", query={"scope": found.id, "limit": EVENTS_SHOWN}
    )
    stored = await context.control.store.read(find_scope(context.control.views, found.id))
    return await context.show(
        "scope.html",
        scope=found,
        instances=instance_rows(context, [stored], context.control.views),
        silent=[each.name for each in found.instances if each.polling is None],
        events=events.events,
    )


PAGES = (Page("/fleet", fleet), Page("/fleet/{scope:path}", scope))
