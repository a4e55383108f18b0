"""Addresses without their secrets, fit for logs, errors and lists. Pure."""

from urllib.parse import urlsplit

HIDDEN = "…"
_WEB = frozenset({"http", "https"})


def redacted(url: str) -> str:
    """A web address keeps its host, for many a service has its key in the path; others nothing."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or HIDDEN
        port = parts.port
    except ValueError:
        return HIDDEN
    if parts.scheme not in _WEB:
        scheme, separator, _ = url.partition("://")
        return f"{scheme}://{HIDDEN}" if separator else HIDDEN
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port is None else f":{port}"
    rest = f"/{HIDDEN}" if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{user}{shown_host}{shown_port}{rest}"
