"""Around every page: the layout, the words, the headers that keep a browser strict."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from fairwarning import __version__
from fairwarning.common.durations import parse_iso_duration_ms
from fairwarning.core.instants import MINUTE_MS, format_rfc3339
from fairwarning.engine.clocks import VirtualClock
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.browser_protection import page_headers
from fairwarning.portal.api import Asking
from fairwarning.portal.page_context import SAID, Desk, said_before
from fairwarning.portal.sessions import Sessions
from fairwarning.portal.strings import Texts
from fairwarning.portal.update_domains import state_of

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
        self._templates.filters |= FILTERS

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


# How values look on a page. Times are marked up: the browser writes them in the reader's zone.
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def when(text: str | None, kind: str = "both") -> Markup:
    """`kind`: `both`, `time`, `date`, `ago` (how long ago), `left` (counts down)."""
    if not text:
        return Markup('<span class="none">-</span>')
    at = datetime.fromisoformat(text).astimezone(UTC)
    plain = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup(
        '<time datetime="{iso}" title="{plain}" data-when="{kind}">{plain}</time>'
    ).format(iso=at.strftime("%Y-%m-%dT%H:%M:%SZ"), plain=plain, kind=kind)


def span(seconds: float | None) -> str:
    """`1 h 30 min`; at most two units, because nobody plans by more."""
    if seconds is None or seconds < 0:
        return "-"
    left, parts = round(seconds), []
    for size, unit in _UNITS:
        if left >= size:
            count, left = divmod(left, size)
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def short(id: str) -> str:
    """The first part of a GUID, enough to tell events apart on a page."""
    return id.partition("-")[0]


def named(scope_id: str) -> str:
    """`web` for `SUBSCRIPTION/GROUP/availability-set/web`."""
    return scope_id.split("/")[3] if scope_id.count("/") >= 3 else scope_id


def minutes(duration: str) -> int:
    """`PT10M` as 10."""
    return (parse_iso_duration_ms(duration) or 0) // MINUTE_MS


def duration(text: str) -> str:
    """`PT10M` as `10 min`."""
    return span((parse_iso_duration_ms(text) or 0) / 1000)


FILTERS: dict[str, Callable[..., Any]] = {
    "when": when,
    "span": span,
    "short": short,
    "named": named,
    "minutes": minutes,
    "duration": duration,
    "state": state_of,
}
