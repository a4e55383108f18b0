"""Decides which instance sent a request. No header that a client can set decides this.

The source address decides, with two exceptions that the operator must allow. On a loopback
listener, the base path /vm/NAME or /vm/SET/NAME names the instance, so that one laptop can play a
whole fleet. From a proxy's address, a header names it, with an HMAC that only the proxy can make,
as in OpenStack's metadata proxy. Requests of a browser also come from loopback, so requests
there are refused if a web page may have sent them.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence

from fairwarning.core.scope_names import is_meant, short_name
from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Request
from fairwarning.metadata.responses import FOREIGN, FORWARDED, Response, error
from fairwarning.metadata.settings import EndpointRules

_HINT_NAMES_MAX = 5
"""How many names an error message gives as examples."""
_NO_BASE_PATH = error(404, "Not found. /vm/NAME is for loopback listeners only")
_UNSIGNED = error(
    404, "Not found. From a proxy X-Instance-ID and X-Instance-ID-Signature are needed, each once"
)


def is_loopback(host: str) -> bool:
    """Return whether the host is a loopback address. It is false for every name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def canonical(host: str, zone: int = 0) -> str:
    """Return the address in the form that the fleet uses. An IPv4-mapped one becomes IPv4.

    `zone` is the link of a link-local address, else 0. The result contains it (`fe80::1%2`). Such
    an address is never found in the fleet, because another link may have the same address.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{address}%{zone}" if zone else str(address)


def sign(secret: str, instance: str) -> str:
    """Return the signature that a proxy sends with `X-Instance-ID`."""
    return hmac.new(secret.encode(), instance.encode(), hashlib.sha256).hexdigest()


class Callers:
    """Finds the instance that sent a request."""

    def __init__(self, views: Views, rules: EndpointRules) -> None:
        self._views = views
        self._rules = rules

    def find(self, request: Request, address: str, *, on_loopback: bool) -> Member | Response:
        """Return the instance, or the response that refuses the request. `on_loopback` says whether
        both ends are on loopback.
        """
        if self._rules.proxy_secret and address in self._rules.proxy_addresses:
            # From a proxy, only the signature counts. Its client may have written all the rest.
            return _UNSIGNED if request.proxied is None else self._behind_proxy(*request.proxied)
        if on_loopback and request.is_foreign:
            return FOREIGN
        if request.is_forwarded:
            return FORWARDED
        if request.vm is not None:
            return self._named(request.vm, hints=True) if on_loopback else _NO_BASE_PATH
        member = self._views.by_address(address)
        if member is None:
            return self._unknown_address(address, on_loopback=on_loopback)
        return member

    def _behind_proxy(self, instance: str, signature: str) -> Member | Response:
        expected = sign(self._rules.proxy_secret, instance)
        if not hmac.compare_digest(expected.encode(), signature.lower().encode()):
            return error(404, "Not found. The signature of X-Instance-ID is wrong")
        return self._named(instance, hints=False)

    def _named(self, name: str, *, hints: bool) -> Member | Response:
        """Return the instance of this name, or an error if there is none or more than one. Only
        with `hints` the error names scopes and other instances.
        """
        set_name, _, last = name.rpartition("/")
        found = self._views.by_name(last)
        if set_name:
            found = [each for each in found if is_meant(each.view.scope_id, set_name)]
        if len(found) == 1:
            return found[0]
        if found:
            where = _ways_to_name(last, found) if hints else ""
            return error(404, f"Not found. Several scopes have an instance {last}{where}")
        known = self._known() if hints else ""
        return error(404, f"Not found. No instance is called {name}{known}")

    def _unknown_address(self, address: str, *, on_loopback: bool) -> Response:
        hint = ". On loopback put /vm/NAME before /metadata" + self._known() if on_loopback else ""
        if "%" in address:
            hint = "; a link-local one never does, so ask from another address"
        return error(404, f"Not found. Address {address} belongs to no instance{hint}")

    def _known(self) -> str:
        names = self._views.some_names(_HINT_NAMES_MAX)
        return f"; there is, for example, {', '.join(names)}" if names else "; the fleet is empty"


def _ways_to_name(name: str, found: Sequence[Member]) -> str:
    """Return how to name each of several instances that have the same name."""
    scopes = sorted(each.view.scope_id for each in found)
    ways = [f"/vm/{short_name(each, scopes)}/{name}" for each in scopes[:_HINT_NAMES_MAX]]
    return f"; write {' or '.join(ways)}"
