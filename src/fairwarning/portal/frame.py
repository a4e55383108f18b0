"""Around every page: the layout, the words, the headers that keep a browser strict."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from fairwarning import __version__
from fairwarning.control.access import Role
from fairwarning.control.page_headers import page_headers
from fairwarning.core.instants import format_rfc3339
from fairwarning.engine.clocks import VirtualClock
from fairwarning.portal import formats
from fairwarning.portal.asking import Asking
from fairwarning.portal.desk import SAID, Desk, said_before
from fairwarning.portal.sessions import Sessions
from fairwarning.portal.texts import Texts

HEADERS = page_headers()
NAVIGATION = (
    ("overview", "/"),
    ("events", "/events"),
    ("fleet", "/fleet"),
    ("plan", "/plan"),
    ("rollouts", "/rollouts"),
    ("scale-sets", "/scale-sets"),
    ("rehearse", "/rehearse"),
    ("history", "/history"),
    ("settings", "/settings"),
)


class Frame:
    def __init__(self, asking: Asking, sessions: Sessions, texts: Texts) -> None:
        self.asking = asking
        self.sessions = sessions
        self.t = texts
        self._templates = Environment(
            loader=PackageLoader("fairwarning.portal"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {
            "t": texts,
            "asset": asset_url,
            "navigation": NAVIGATION,
            "version": __version__,
            "Role": Role,
        }
        self._templates.filters |= formats.FILTERS

    def page(self, desk: Desk, template: str, status: int, values: dict[str, Any]) -> Response:
        request, clock = desk.request, desk.control.clock
        said = said_before(request)
        body = self._templates.get_template(template).render(
            **values,
            desk=desk,
            caller=desk.caller,
            may=desk.may,
            path=request.url.path,
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            key_of_forms=self.sessions.form_key(request),
            said=said,
            now=format_rfc3339(clock.now()),
            is_virtual=isinstance(clock, VirtualClock),
            faults=len(desk.control.faults.list()),
            can_log_out=self.sessions.needs_token,
            is_answer=request.method == "POST",
        )
        response = HTMLResponse(body, status, headers=HEADERS)
        if said is not None:
            response.delete_cookie(SAID)
        return response

    def bare(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page for whoever has not logged in."""
        body = self._templates.get_template(template).render(**values)
        return HTMLResponse(body, status, headers=HEADERS)


@cache
def asset_url(name: str) -> str:
    """With the contents' hash, so that a browser may keep it for ever and never has an old one."""
    body = (files("fairwarning.portal") / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(body).hexdigest()[:12]}"
