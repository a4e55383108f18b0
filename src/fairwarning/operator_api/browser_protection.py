"""Protection of a listener that asks for no token: only this machine's own programs may use it.

A web page anywhere can make a browser send requests to loopback. The browser says in `Host`
which name it looked up, and in `Origin` and `Sec-Fetch-Site` where the page came from; a page
cannot change either. So a foreign name (DNS rebinding) and a foreign page are both refused.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from fairwarning.operator_api.problems import Problem

_LOCAL_NAMES = frozenset({"localhost", "localhost."})


def refuse_foreign(headers: Mapping[str, str], scheme: str) -> None:
    """Raises Problem if a request on loopback has a foreign host or comes from a foreign page."""
    host = headers.get("host", "")
    if not _is_local(host):
        raise Problem(
            403,
            "foreign-host",
            f"this listener answers to localhost and loopback addresses only, not to {host[:100]!r}"
            "; use one of those in the URL",
        )
    refuse_foreign_page(headers, scheme)


def refuse_foreign_page(headers: Mapping[str, str], scheme: str, public_url: str = "") -> None:
    """Raises Problem if a page of another site sent the request.

    `public_url` is the URL of our pages behind a proxy. Headers of the proxy are not trusted,
    because every client could send them too.
    """
    host = headers.get("host", "")
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site", "none")
    ours = (f"{scheme}://{host.lower()}", public_url or None)
    is_foreign = origin is not None and origin.lower() not in ours
    if is_foreign or site not in ("none", "same-origin"):
        raise Problem(
            403,
            "foreign-origin",
            "a page of another site sent this request, and that is not allowed without a token; "
            "open the portal itself",
        )


def _is_local(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


# Headers of every page: which sources the browser may use, and which sites may frame the page.
def page_headers(form_action: str = "'self'") -> dict[str, str]:
    """Return the security headers. `form_action` is where forms of the page may be sent."""
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            f"connect-src 'self'; form-action {form_action}; base-uri 'none'; "
            "frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
