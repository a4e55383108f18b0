"""The settings page: facts of this server, tokens, and targets of notifications."""

from starlette.responses import Response

from fairwarning import __version__
from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext

LISTED = 200  # Nobody reads through more of them on one page.


async def settings(context: PageContext) -> Response:
    clock: schemas.ClockState = await context.ask("GET", "/clock")
    azure: schemas.AzureOut = await context.ask("GET", "/azure")
    return await context.show(
        "settings.html",
        clock=clock,
        azure=azure,
        summary=await context.control.views.summary(),
        version_now=__version__,
        tokens=await _tokens(context),
        notifications=await _notifications(context),
        made=None,
    )


async def create_token(context: PageContext) -> Response:
    """Create a token and show its secret on this page, without a redirect: it is shown once."""
    form = context.form
    body = {"name": form.get("name", ""), "role": form.get("role", "viewer")}
    if "expires" in form:
        body["expires"] = form["expires"]
    made: schemas.TokenWithSecret = await context.ask("POST", "/tokens", body=body)
    return await context.show("token_made.html", made=made)


async def revoke_token(context: PageContext) -> Response:
    await context.ask("DELETE", "/tokens/{id}", names={"id": context.names["id"]})
    return context.go("/settings", said=context.t("settings.revoked"))


async def test_notification(context: PageContext) -> Response:
    found = await context.ask("POST", "/notifications/{id}/test", names={"id": context.names["id"]})
    if not found.delivered:
        return context.go("/settings", said=found.error, failed=True)
    return context.go("/settings", said=context.t("settings.notification-sent"))


async def _tokens(context: PageContext) -> list[schemas.TokenOut] | None:
    """Return the tokens, or None if the caller may not see them."""
    if not context.may("GET", "/tokens"):
        return None
    found: schemas.Tokens = await context.ask("GET", "/tokens", query={"limit": LISTED})
    return found.tokens


async def _notifications(context: PageContext) -> list[object] | None:
    if not context.may("GET", "/notifications"):
        return None
    found = await context.ask("GET", "/notifications")
    return list(found.notifications)


PAGES = (
    Page("/settings", settings),
    Page("/settings/tokens", create_token, sends=True),
    Page("/settings/tokens/{id}/revoke", revoke_token, sends=True),
    Page("/settings/notifications/{id}/test", test_notification, sends=True),
)
