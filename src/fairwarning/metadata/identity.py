"""Who is asking. Never a matter of a header that a client can set.

Theory of operation. The source address decides. Only where the operator said so may
something else: on a loopback listener the base path /vm/NAME, so that one laptop can play
a whole fleet; and from a proxy's own address a name under an HMAC that only the proxy can
make, as OpenStack's metadata proxy does it. A browser on that laptop asks from loopback too,
so there a request that a web page may have sent is refused.
"""

import hashlib
import hmac
import ipaddress

from fairwarning.engine.document_views import Views
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Ask
from fairwarning.metadata.responses import FOREIGN, FORWARDED, Answer, error
from fairwarning.metadata.settings import EndpointRules

_HINT_NAMES_MAX = 5
_UNSIGNED = error(
    404,
    "Not found. From a proxy X-Instance-ID and X-Instance-ID-Signature are needed, each once",
)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def canonical(host: str, zone: int = 0) -> str:
    """The form that addresses have in the fleet: IPv4 as IPv4.

    `zone` is the link of a link-local address, else 0. It stays with the address (`fe80::1%2`),
    and no address in the fleet has one: the same address on another link is somebody else's.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{address}%{zone}" if zone else str(address)


def sign(secret: str, instance: str) -> str:
    return hmac.new(secret.encode(), instance.encode(), hashlib.sha256).hexdigest()


class Callers:
    """Finds the member of the fleet behind a request, or the answer that there is none."""

    def __init__(self, views: Views, rules: EndpointRules) -> None:
        self._views = views
        self._rules = rules

    def find(self, ask: Ask, address: str, *, on_loopback: bool) -> Member | Answer:
        """`on_loopback`: the listener is, and the peer is too."""
        if self._rules.proxy_secret and address in self._rules.proxy_addresses:
            # Nothing else counts there: whatever else it says may be its client's word.
            return _UNSIGNED if ask.proxied is None else self._behind_proxy(*ask.proxied)
        if on_loopback and ask.is_foreign:
            return FOREIGN
        if ask.is_forwarded:
            return FORWARDED
        if ask.vm is not None:
            return self._named(ask.vm, hints=True) if on_loopback else _no_base_path()
        member = self._views.by_address(address)
        if member is None:
            return self._unknown_address(address, on_loopback=on_loopback)
        return member

    def _behind_proxy(self, instance: str, signature: str) -> Member | Answer:
        expected = sign(self._rules.proxy_secret, instance)
        if not hmac.compare_digest(expected.encode(), signature.lower().encode()):
            return error(404, "Not found. The signature of X-Instance-ID is wrong")
        return self._named(instance, hints=False)

    def _named(self, name: str, *, hints: bool) -> Member | Answer:
        """Without hints there is no word of others: it is an instance that reads it."""
        found = self._views.by_name(name)
        if len(found) == 1:
            return found[0]
        if found:
            scopes = ", ".join(sorted(each.view.scope_id for each in found)[:_HINT_NAMES_MAX])
            where = f": {scopes}" if hints else ""
            return error(404, f"Not found. Several scopes have an instance {name}{where}")
        known = self._known() if hints else ""
        return error(404, f"Not found. No instance is called {name}{known}")

    def _unknown_address(self, address: str, *, on_loopback: bool) -> Answer:
        hint = ". On loopback put /vm/NAME before /metadata" + self._known() if on_loopback else ""
        if "%" in address:
            hint = "; a link-local one never does, so ask from another address"
        return error(404, f"Not found. Address {address} belongs to no instance{hint}")

    def _known(self) -> str:
        names = self._views.some_names(_HINT_NAMES_MAX)
        return f"; there is, for example, {', '.join(names)}" if names else "; the fleet is empty"


def _no_base_path() -> Answer:
    return error(404, "Not found. /vm/NAME is for loopback listeners only")
