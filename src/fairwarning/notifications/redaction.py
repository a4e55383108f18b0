"""Removes secrets from addresses, for logs, errors and lists. Pure."""

from urllib.parse import urlsplit

HIDDEN = "…"
_WEB = frozenset({"http", "https"})


def redacted(url: str) -> str:
    """Keep only scheme and host of a web address, and only the scheme of others.

    Many services have their key in the path.
    """
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
