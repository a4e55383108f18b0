"""Makes command lines for pages, ready to paste, that work with this server. Pure."""

import ipaddress
import shlex
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

DEFAULT_CONTROL_URL = "http://127.0.0.1:8170"
PATH = "/metadata/scheduledevents?api-version="


def can_play(metadata_urls: Sequence[str]) -> bool:
    """Return whether a reader of the page can poll as any instance. A listener on loopback allows
    that.
    """
    return any(_is_loopback(each) for each in metadata_urls)


def curl(metadata_urls: Sequence[str], host: str, instance: str, version: str) -> str:
    """Return a curl command that polls as `instance`; empty without a metadata listener.

    If no listener is on loopback, the command must be run on the instance. `host` is the name by
    which the reader reached us; it is used for a listener on all addresses.
    """
    if not metadata_urls:
        return ""
    near = next((each for each in metadata_urls if _is_loopback(each)), None)
    whose = f"/vm/{quote(instance, safe='')}" if near else ""
    base = near or _reachable(metadata_urls[0], host)
    return f"curl -H Metadata:true {shlex.quote(base + whose + PATH + version)}"


def program(control_url: str, *words: str) -> str:
    """Return the command `fairwarning WORDS`, with the server's URL if it is not the default."""
    called = shlex.join(["fairwarning", *words])
    if control_url == DEFAULT_CONTROL_URL:
        return called
    return f"FAIRWARNING_URL={shlex.quote(control_url)} {called}"


def _reachable(url: str, host: str) -> str:
    parts = urlsplit(url)
    if not ipaddress.ip_address(parts.hostname or "").is_unspecified:
        return url
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{parts.port}"


def _is_loopback(url: str) -> bool:
    return ipaddress.ip_address(urlsplit(url).hostname or "").is_loopback
