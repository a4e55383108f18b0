"""The request that an `http` action makes, with its templates filled in. Pure.

A value never changes what stands around it: it is escaped for the place where it stands.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.model import Http

_TEMPLATE = re.compile(r"(?<!\$)\{[a-z][a-z0-9_.]*\}")
_JSON = re.compile(r"\s*(\{\s*[\"}]|\[|\{event\.json\}\s*$)")
_NEVER_IN_HEADERS = re.compile(r"[\r\n\0]+")
# What may stand in an address: the rest is escaped, and what is escaped already stays so.
_URL_SAFE = "%/:?#[]@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    method: str
    is_tls: bool
    host: str
    port: int
    authority: str
    """For the Host header: without user and password."""
    target: str
    headers: Mapping[str, str]
    body: bytes


def prepare(settings: Http, context: Context) -> Prepared:
    """Raises ActionFailed if that is no address."""
    parts = urlsplit(quote(_filled(settings.url, context, _in_url), safe=_URL_SAFE))
    host, port = _place(parts)
    is_tls = parts.scheme == "https"
    render = context.render_json if is_json(settings) else context.render
    body = render(settings.body).encode()
    return Prepared(
        method=settings.method.upper(),
        is_tls=is_tls,
        host=host,
        port=port or (443 if is_tls else 80),
        authority=parts.netloc.rpartition("@")[2],
        target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        headers=_headers(settings, context, parts, bool(body)),
        body=body,
    )


def is_json(settings: Http) -> bool:
    said = {name.lower(): value for name, value in settings.headers.items()}.get("content-type")
    return bool(_JSON.match(settings.body)) if said is None else "json" in said.lower()


def basic(user: str | None, password: str | None) -> str:
    """For a user and a password as they stand in an address."""
    both = f"{unquote(user or '')}:{unquote(password or '')}"
    return "Basic " + base64.b64encode(both.encode()).decode()


def _place(parts: SplitResult) -> tuple[str, int | None]:
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ActionFailed("the url is no web address; it begins with http:// or https://")
    return host, port


def _headers(
    settings: Http, context: Context, parts: SplitResult, has_body: bool
) -> dict[str, str]:
    headers = {"User-Agent": "fairwarning"}
    if has_body:
        headers["Content-Type"] = (
            "application/json" if is_json(settings) else "text/plain; charset=utf-8"
        )
    if parts.username is not None:
        headers["Authorization"] = basic(parts.username, parts.password)
    for name, value in settings.headers.items():
        same = next((each for each in headers if each.lower() == name.lower()), name)
        headers[same] = _filled(value, context, _in_header)
    return headers


def _filled(text: str, context: Context, escape: Callable[[str], str]) -> str:
    def fill(found: re.Match[str]) -> str:
        value = context.render(found[0])
        return value if value == found[0] else escape(value)

    return _TEMPLATE.sub(fill, text)


def _in_url(value: str) -> str:
    return quote(value, safe="")


def _in_header(value: str) -> str:
    """Header values are ASCII: what is not is escaped as in an address."""
    return quote(_NEVER_IN_HEADERS.sub(" ", value), safe=_URL_SAFE + ' "<>\\^`{|}')
