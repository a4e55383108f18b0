"""The fleet as it is: scopes with their update domains, and each scope for itself."""

from starlette.responses import Response

from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk
from fairwarning.portal.update_domains import by_update_domain, silent

SCOPES_SHOWN = 20


async def fleet(desk: Desk) -> Response:
    query = desk.query
    search = query.get("search", "").strip()
    found: schemas.Fleet = await desk.ask(
        "GET",
        "/fleet",
        query={"search": search or None, "after": query.get("after"), "limit": SCOPES_SHOWN},
    )
    return desk.show(
        "fleet.html",
        scopes=[(scope, by_update_domain(scope)) for scope in found.scopes],
        search=search,
        after=query.get("after"),
        next=found.next,
        summary=desk.control.views.summary(),
    )


async def scope(desk: Desk) -> Response:
    found: schemas.Scope = await desk.ask(
        "GET", "/scopes/{scope:path}", names={"scope": desk.names["scope"]}
    )
    events: schemas.Events = await desk.ask(
        "GET", "/events", query={"scope": found.id, "limit": 20}
    )
    return desk.show(
        "scope.html",
        scope=found,
        domains=by_update_domain(found),
        silent=silent(found),
        events=events.events,
    )


PAGES = (Page("/fleet", fleet), Page("/fleet/{scope:path}", scope))
