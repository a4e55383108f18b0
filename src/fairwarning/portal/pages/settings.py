"""How this server stands, who has access, and who is told."""

from starlette.responses import Response

from fairwarning import __version__
from fairwarning.operator_api import schemas
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import Desk

LISTED = 200


async def settings(desk: Desk) -> Response:
    clock: schemas.ClockState = await desk.ask("GET", "/clock")
    azure: schemas.AzureOut = await desk.ask("GET", "/azure")
    return desk.show(
        "settings.html",
        clock=clock,
        azure=azure,
        summary=desk.control.views.summary(),
        version_now=__version__,
        tokens=await _tokens(desk),
        notifications=await _notifications(desk),
        made=None,
    )


async def make_token(desk: Desk) -> Response:
    """The secret is in this one answer and nowhere else, so there is no way onward from it."""
    form = desk.form
    body = {"name": form.get("name", ""), "role": form.get("role", "viewer")}
    if "expires" in form:
        body["expires"] = form["expires"]
    made: schemas.TokenWithSecret = await desk.ask("POST", "/tokens", body=body)
    return desk.show("token_made.html", made=made)


async def revoke_token(desk: Desk) -> Response:
    await desk.ask("DELETE", "/tokens/{id}", names={"id": desk.names["id"]})
    return desk.go("/settings", said=desk.t("settings.revoked"))


async def test_notification(desk: Desk) -> Response:
    found = await desk.ask("POST", "/notifications/{id}/test", names={"id": desk.names["id"]})
    if not found.delivered:
        return desk.go("/settings", said=found.error, failed=True)
    return desk.go("/settings", said=desk.t("settings.notification-sent"))


async def _tokens(desk: Desk) -> list[schemas.TokenOut] | None:
    """None for those who may not see them."""
    if not desk.may("GET", "/tokens"):
        return None
    found: schemas.Tokens = await desk.ask("GET", "/tokens", query={"limit": LISTED})
    return found.tokens


async def _notifications(desk: Desk) -> list[object] | None:
    if not desk.may("GET", "/notifications"):
        return None
    found = await desk.ask("GET", "/notifications")
    return list(found.notifications)


PAGES = (
    Page("/settings", settings),
    Page("/settings/tokens", make_token, sends=True),
    Page("/settings/tokens/{id}/revoke", revoke_token, sends=True),
    Page("/settings/notifications/{id}/test", test_notification, sends=True),
)
