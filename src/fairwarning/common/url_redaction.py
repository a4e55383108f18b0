"""This module removes secrets from URLs before they are logged, listed or put into an error."""

from urllib.parse import urlsplit

HIDDEN = "…"
_WEB = frozenset({"http", "https"})


def redacted(url: str) -> str:
    """Return the scheme, host and port of an HTTP URL, and only the scheme of any other URL. The
    path is hidden too, because many services have a secret key in it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return HIDDEN
    if parts.scheme not in _WEB or not host:
        scheme, separator, _ = url.partition("://")
        return f"{scheme}://{HIDDEN}" if separator else HIDDEN
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port is None else f":{port}"
    rest = f"/{HIDDEN}" if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{user}{shown_host}{shown_port}{rest}"
