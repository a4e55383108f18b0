"""The pages of the fleet: all scopes with their update domains, and one scope."""

from starlette.responses import Response

from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.update_domains import by_update_domain, silent

SCOPES_SHOWN = 20  # Each scope is a block with its update domains.


async def fleet(context: PageContext) -> Response:
    query = context.query
    search = query.get("search", "").strip()
    found: schemas.Fleet = await context.ask(
        "GET",
        "/fleet",
        query={"search": search or None, "after": query.get("after"), "limit": SCOPES_SHOWN},
    )
    return await context.show(
        "fleet.html",
        scopes=[(scope, by_update_domain(scope)) for scope in found.scopes],
        search=search,
        after=query.get("after"),
        next=found.next,
        summary=context.control.views.summary(),
    )


async def scope(context: PageContext) -> Response:
    found: schemas.Scope = await context.ask(
        "GET", "/scopes/{scope:path}", names={"scope": context.names["scope"]}
    )
    events: schemas.Events = await context.ask(
        "GET", "/events", query={"scope": found.id, "limit": 20}
    )
    return await context.show(
        "scope.html",
        scope=found,
        domains=by_update_domain(found),
        silent=silent(found),
        events=events.events,
        marked=context.query.get("instance", ""),
    )


PAGES = (Page("/fleet", fleet), Page("/fleet/{scope:path}", scope))
