"""`PageContext` holds what a page's handler needs: the caller, the form, and ways to answer."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fairwarning.operator_api.auth import Caller
from fairwarning.operator_api.context import Control

if TYPE_CHECKING:
    from fairwarning.portal.layout import Layout
    from fairwarning.portal.scenario_runner import ScenarioRunner

SAID = "fairwarning-said"
SAID_CHARS_MAX = 1_000  # The message is kept in a cookie, which holds 4 KiB.


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    request: Request
    caller: Caller
    control: Control
    layout: "Layout"
    scenario_runner: "ScenarioRunner"
    form: Mapping[str, str]
    """The first value of each field of a POST; empty fields are left out."""
    lists: Mapping[str, Sequence[str]]
    """All values of each field of a POST."""

    async def ask(self, method: str, path: str, **more: Any) -> Any:
        """Call a route of the operator API; see `Api.ask`."""
        return await self.layout.api.ask(self.caller, method, path, **more)

    def may(self, method: str, path: str) -> bool:
        return self.layout.api.may(self.caller, method, path)

    def t(self, key: str, /, **values: object) -> str:
        return self.layout.t(key, **values)

    @property
    def query(self) -> Mapping[str, str]:
        return {name: value for name, value in self.request.query_params.items() if value}

    @property
    def names(self) -> Mapping[str, str]:
        return self.request.path_params

    async def show(self, template: str, /, status: int = 200, **values: Any) -> Response:
        """Answer with the rendered page."""
        return await self.layout.page(self, template, status, values)

    def go(self, url: str, *, said: str = "", failed: bool = False) -> Response:
        """Redirect to a page of the portal, which shows the message `said` once."""
        response = RedirectResponse(url, 303)
        if said:
            note = {"text": said[:SAID_CHARS_MAX], "failed": failed}
            packed = base64.urlsafe_b64encode(json.dumps(note).encode()).decode()
            response.set_cookie(SAID, packed, max_age=30, httponly=True, samesite="strict")
        return response

    def back(self, *, said: str, failed: bool = False) -> Response:
        """Redirect to the page of the form, which shows the message `said` once."""
        return self.go(self.form.get("back") or "/", said=said, failed=failed)


def said_before(request: Request) -> dict[str, Any] | None:
    """Return the message of the last form for this page, or None if there is none."""
    try:
        found = json.loads(base64.urlsafe_b64decode(request.cookies.get(SAID, "")))
    except (ValueError, binascii.Error):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("text"), str) else None
