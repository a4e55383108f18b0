"""Identity: which instance sends a request. No header that a client can set decides it.

The source address decides, with two exceptions that the operator must allow. On a loopback
listener the base path /vm/NAME names the instance, so that one laptop can play a whole fleet. From
a proxy's own address, a name under an HMAC that only the proxy can make does, as in OpenStack's
metadata proxy. A browser on that laptop asks from loopback too, so requests that a web page may
have sent are refused there.
"""

import hashlib
import hmac
import ipaddress

from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Request
from fairwarning.metadata.responses import FOREIGN, FORWARDED, Response, error
from fairwarning.metadata.settings import EndpointRules

_HINT_NAMES_MAX = 5
"""How many names an error message gives as examples."""
_UNSIGNED = error(
    404,
    "Not found. From a proxy X-Instance-ID and X-Instance-ID-Signature are needed, each once",
)


def is_loopback(host: str) -> bool:
    """Return whether the host is a loopback address. A name never is."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def canonical(host: str, zone: int = 0) -> str:
    """Return the address in the form that the fleet has: an IPv4-mapped one as IPv4.

    `zone` is the link of a link-local address, else 0. It stays with the address (`fe80::1%2`).
    No address in the fleet has one, because another link may have the same address.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{address}%{zone}" if zone else str(address)


def sign(secret: str, instance: str) -> str:
    """Return the signature that a proxy sends with `X-Instance-ID`."""
    return hmac.new(secret.encode(), instance.encode(), hashlib.sha256).hexdigest()


class Callers:
    """Finds the instance behind a request, or the response that there is none."""

    def __init__(self, views: Views, rules: EndpointRules) -> None:
        self._views = views
        self._rules = rules

    def find(self, request: Request, address: str, *, on_loopback: bool) -> Member | Response:
        """Return the instance or the refusal. `on_loopback`: both listener and peer are there."""
        if self._rules.proxy_secret and address in self._rules.proxy_addresses:
            # Only the signature counts there: all else may have been written by its client.
            return _UNSIGNED if request.proxied is None else self._behind_proxy(*request.proxied)
        if on_loopback and request.is_foreign:
            return FOREIGN
        if request.is_forwarded:
            return FORWARDED
        if request.vm is not None:
            return self._named(request.vm, hints=True) if on_loopback else _no_base_path()
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
        """Find an instance by name. Without `hints` the error names no other instance, because an
        instance reads it.
        """
        found = self._views.by_name(name)
        if len(found) == 1:
            return found[0]
        if found:
            scopes = ", ".join(sorted(each.view.scope_id for each in found)[:_HINT_NAMES_MAX])
            where = f": {scopes}" if hints else ""
            return error(404, f"Not found. Several scopes have an instance {name}{where}")
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


def _no_base_path() -> Response:
    return error(404, "Not found. /vm/NAME is for loopback listeners only")
