"""Renders templates into pages, with the common layout, filters, and strict headers."""

import asyncio
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from fairwarning import __version__
from fairwarning.common.durations import parse_iso_duration_ms
from fairwarning.core.instants import MINUTE_MS, format_rfc3339
from fairwarning.engine.clocks import VirtualClock
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.browser_protection import page_headers
from fairwarning.portal.api import Api
from fairwarning.portal.page_context import SAID, PageContext, said_before
from fairwarning.portal.row_pages import state_of
from fairwarning.portal.sessions import Sessions
from fairwarning.portal.strings import Texts, with_code

HEADERS = page_headers()
SHARED_TEMPLATES = ("layout.html", "macros.html", "event_parts.html", "instances.html")
"""Templates that others extend or import. They are compiled first, in the same thread."""
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
KEYS = {"overview": "o", "events": "e", "fleet": "f", "plan": "p", "rollouts": "r",
        "scale-sets": "s", "rehearse": "t", "history": "h", "settings": "c"}  # fmt: skip
"""The letter that leads to each page after the key `g`."""


class Layout:
    def __init__(self, api: Api, sessions: Sessions, texts: Texts) -> None:
        self.api = api
        self.sessions = sessions
        self.t = texts
        self._templates = Environment(
            loader=PackageLoader("fairwarning.portal"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._compiled: dict[str, Template] = {}
        self._templates.globals |= {
            "t": texts,
            "asset": asset_url,
            "navigation": NAVIGATION,
            "keys": KEYS,
            "version": __version__,
            "Role": Role,
        }
        self._templates.filters |= FILTERS

    async def page(
        self, context: PageContext, template: str, status: int, values: dict[str, Any]
    ) -> Response:
        request, clock = context.request, context.control.clock
        said = said_before(request)
        body = (await self._template(template)).render(
            **values,
            context=context,
            caller=context.caller,
            may=context.may,
            path=request.url.path,
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            key_of_forms=self.sessions.form_key(request),
            said=said,
            now=format_rfc3339(clock.now()),
            is_virtual=isinstance(clock, VirtualClock),
            faults=len(context.control.faults.list()),
            can_log_out=self.sessions.needs_token,
            is_answer=request.method == "POST",
        )
        response = HTMLResponse(body, status, headers=HEADERS)
        if said is not None:
            response.delete_cookie(SAID)
        return response

    async def bare(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a page for a visitor who has not logged in."""
        body = (await self._template(template)).render(**{"title": "", **values})
        return HTMLResponse(body, status, headers=HEADERS)

    async def _template(self, name: str) -> Template:
        """Return the template. It is compiled once, in a thread, so that polls need not wait."""
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = await asyncio.to_thread(self._compile, name)
        return found

    def _compile(self, name: str) -> Template:
        for other in SHARED_TEMPLATES:
            self._templates.get_template(other)
        return self._templates.get_template(name)


@cache
def asset_url(name: str) -> str:
    """Return the file's URL with a hash of its contents, so that browsers may cache it forever."""
    body = (files("fairwarning.portal") / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(body).hexdigest()[:12]}"


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def when(text: str | None, kind: str = "both") -> Markup:
    """Return markup of a time. The browser shows the time in the reader's zone.

    `kind` is `both` (date and time), `time`, `date`, `ago` (how long ago) or `left` (countdown).
    """
    if not text:
        return Markup('<span class="none">-</span>')
    at = datetime.fromisoformat(text).astimezone(UTC)
    plain = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup(
        '<time datetime="{iso}" title="{plain}" data-when="{kind}">{plain}</time>'
    ).format(iso=at.strftime("%Y-%m-%dT%H:%M:%SZ"), plain=plain, kind=kind)


def span(seconds: float | None) -> str:
    """Return text like `1 h 30 min`, with at most two units."""
    if seconds is None or seconds < 0:
        return "-"
    left, parts = round(seconds), []
    for size, unit in _UNITS:
        if left >= size:
            count, left = divmod(left, size)
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def short(id: str) -> str:
    """Return the first part of a GUID, enough to tell events apart on a page."""
    return id.partition("-")[0]


def named(scope_id: str) -> str:
    """Return the name of a scope: `web` for `SUBSCRIPTION/GROUP/availability-set/web`."""
    return scope_id.split("/")[3] if scope_id.count("/") >= 3 else scope_id


def minutes(duration: str) -> int:
    """Return the minutes of an ISO 8601 duration: 10 for `PT10M`."""
    return (parse_iso_duration_ms(duration) or 0) // MINUTE_MS


def duration(text: str) -> str:
    """Return an ISO 8601 duration in words: `10 min` for `PT10M`."""
    return span((parse_iso_duration_ms(text) or 0) / 1000)


def thousands(number: int) -> str:
    """Return a number like `10,048`."""
    return f"{number:,}"


FILTERS: dict[str, Callable[..., Any]] = {
    "when": when,
    "span": span,
    "short": short,
    "named": named,
    "minutes": minutes,
    "duration": duration,
    "state": state_of,
    "thousands": thousands,
    "code": with_code,
}
