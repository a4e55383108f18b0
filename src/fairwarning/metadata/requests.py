"""Finds out what a request means, from its head and body. This module is pure.

The meaning depends only on the bytes and the rules, so the meaning of a poll can be remembered by
its bytes. The sender is checked separately for every request (`identity.py`).
"""

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.api_versions import BY_NAME, PREVIEW, VERSIONS, ApiVersion
from fairwarning.core.model import EventId
from fairwarning.metadata import responses
from fairwarning.metadata.instance_metadata import INSTANCE_VERSIONS
from fairwarning.metadata.responses import Response
from fairwarning.metadata.settings import START_REQUESTS_MAX, WAIT_S_MAX, EndpointRules

_EVENT_VERSIONS = [version.name for version in VERSIONS]
_FORMS = {version.name: 2 * n for n, version in enumerate((*VERSIONS, PREVIEW))}
_ABSOLUTE = re.compile(r"^http://([^/?]*)(?=/)", re.IGNORECASE)
"""A target that is a whole URL. RFC 9112 3.2.2 says that a server must accept it."""
NAME_PARTS_MAX = 6  # The parts of a scope's whole id, and the name.
AGENT_CHARS_MAX = 100  # It is kept for each instance.
QUERIES_CACHED_MAX = 256  # There are few versions, and few values of `wait`.
HOSTS_CACHED_MAX = 256  # Clients use a handful of addresses.


class Kind(Enum):
    """What a request asks for."""

    EVENTS = auto()
    APPROVE = auto()
    INSTANCE = auto()
    VERSIONS = auto()
    DRAINED = auto()
    """List or report which instances of an event are drained. This is our own extension."""


class Head(Struct, frozen=True, kw_only=True):
    """The request line and headers, as the parser found them. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, Sequence[str]] = {}

    def values(self, name: str) -> Sequence[str]:
        return self.headers.get(name, ())


class Request(Struct, frozen=True, kw_only=True):
    """A well-formed request. Whether its sender may send it is checked later."""

    kind: Kind
    version: ApiVersion | None = None
    instance_version: str = ""
    path: tuple[str, ...] = ()
    is_text: bool = False
    tag: str = ""
    wait_s: int = 0
    vm: str | None = None
    """The instance in the base path, `NAME` of /vm/NAME or `SET/NAME` of /vm/SET/NAME. Only a
    loopback listener accepts it.
    """
    proxied: tuple[str, str] | None = None
    """`X-Instance-ID` and its unverified signature, or None unless each was sent once."""
    is_forwarded: bool = False
    is_plain: bool = True
    """Whether only the source address says which instance sent the request."""
    is_foreign: bool = False
    """Whether a web page may have sent the request. A loopback listener refuses it then."""
    wants_age: bool = False
    """Whether the response shall say how old its content may be (`responses.AGE_HEADER`)."""
    agent: str = ""
    """The first characters of the `User-Agent`."""
    form: int = 0
    """The key of the response in `View.forms`. The response that closes has the next key."""


def parse_request(head: Head, rules: EndpointRules) -> Request | Response:
    """Return the request that the head means, or the response that refuses it."""
    target, _, query = _ABSOLUTE.sub("", head.target).partition("?")
    if not target.startswith("/"):
        return responses.NOT_FOUND
    vm, parts = _without_base_path([part for part in unquote(target).split("/") if part])
    if not parts or parts[0].lower() != "metadata":
        return responses.NOT_FOUND
    parameters = _parameters(query)
    if isinstance(parameters, Response):
        return parameters
    found = _route(head, [part.lower() for part in parts[1:]], parameters, rules)
    if isinstance(found, Response):
        return found
    refusal = _refuse_headers(head, found, rules)
    if refusal is not None:
        return refusal
    return _with_caller(found, head, vm)


def _without_base_path(parts: list[str]) -> tuple[str | None, list[str]]:
    """Return the name in /vm/NAME or /vm/SET/NAME, or None, and the path after it."""
    if parts[:1] and parts[0].lower() == "vm":
        # An instance may be called `metadata`, so the name has one part at least.
        for end in range(2, min(len(parts), NAME_PARTS_MAX + 2)):
            if parts[end].lower() == "metadata":
                return "/".join(parts[1:end]), parts[end:]
    return None, parts


# This is cached, because most clients send the same query again and again.
@lru_cache(QUERIES_CACHED_MAX)
def _parameters(query: str) -> Mapping[str, str] | Response:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=32)
    except ValueError:
        return responses.BAD_QUERY
    names = [name.lower() for name, _ in pairs]
    if len(set(names)) != len(names):
        return responses.DUPLICATE_PARAMETER
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _route(
    head: Head, parts: list[str], parameters: Mapping[str, str], rules: EndpointRules
) -> Request | Response:
    match parts:
        case ["scheduledevents"]:
            return _events(head, parameters, rules)
        case ["latest", "scheduledevents"]:
            return responses.latest_version(rules.unknown_version_status, _known_versions(rules))
        case ["instance", *path]:
            return _instance(head, tuple(path), parameters)
        case ["fairwarning", "drained"]:
            return _drained(head, parameters)
        case ["versions"]:
            if head.method != "GET":
                return responses.method_not_allowed("GET")
            return Request(kind=Kind.VERSIONS)
        case _:
            return responses.NOT_FOUND


def _events(head: Head, parameters: Mapping[str, str], rules: EndpointRules) -> Request | Response:
    if head.method not in ("GET", "POST"):
        return responses.method_not_allowed("GET", "POST")
    name = parameters.get("api-version", "")
    if name.lower() == "latest":
        return responses.latest_version(rules.unknown_version_status, _known_versions(rules))
    version = BY_NAME.get(name)
    known = _known_versions(rules)
    if version is None or name not in known:
        status = rules.unknown_version_status if name else 400
        return responses.bad_version(status, known[:-4:-1])
    if head.method == "POST":
        return Request(kind=Kind.APPROVE, version=version)
    wait = parameters.get("wait", "0")
    if not (wait.isascii() and wait.isdigit() and len(wait) <= 3 and int(wait) <= WAIT_S_MAX):
        return responses.BAD_WAIT
    tags = head.values("if-none-match")
    wait_s = int(wait) if rules.holds_polls else 0
    return Request(kind=Kind.EVENTS, version=version, tag=",".join(tags), wait_s=wait_s)


def _known_versions(rules: EndpointRules) -> list[str]:
    if not rules.newest_version:
        return _EVENT_VERSIONS
    return [each for each in BY_NAME if each <= rules.newest_version]


def _instance(
    head: Head, path: tuple[str, ...], parameters: Mapping[str, str]
) -> Request | Response:
    if head.method != "GET":
        return responses.method_not_allowed("GET")
    version = parameters.get("api-version", "")
    if version not in INSTANCE_VERSIONS:
        return responses.bad_version(400, INSTANCE_VERSIONS[:-4:-1])
    form = parameters.get("format", "json").lower()
    if form not in ("json", "text"):
        return responses.BAD_FORMAT
    return Request(kind=Kind.INSTANCE, instance_version=version, path=path, is_text=form == "text")


def _drained(head: Head, parameters: Mapping[str, str]) -> Request | Response:
    if head.method == "POST":
        return Request(kind=Kind.DRAINED)
    if head.method != "GET":
        return responses.method_not_allowed("GET", "POST")
    id = parameters.get("eventid", "")
    return Request(kind=Kind.DRAINED, path=(id,)) if id else responses.NO_EVENT_ID


def _refuse_headers(head: Head, request: Request, rules: EndpointRules) -> Response | None:
    is_lenient = request.kind is Kind.APPROVE and (
        rules.is_header_optional_on_post
        or (request.version is not None and request.version.is_header_optional_on_post)
    )
    if not is_lenient and [v.lower() for v in head.values("metadata")] != ["true"]:
        return responses.NO_METADATA_HEADER
    if head.values("x-forwarded-for") and not rules.proxy_secret:
        return responses.FORWARDED
    return None


def _with_caller(request: Request, head: Head, vm: str | None) -> Request:
    ids, signatures = head.values("x-instance-id"), head.values("x-instance-id-signature")
    proxied = (ids[0], signatures[0]) if len(ids) == len(signatures) == 1 else None
    forwarded = bool(head.values("x-forwarded-for"))
    agents = head.values("user-agent")
    return replace(
        request,
        vm=vm,
        agent=agents[0][:AGENT_CHARS_MAX] if agents else "",
        proxied=proxied,
        is_forwarded=forwarded,
        is_plain=vm is None and proxied is None and not forwarded,
        is_foreign=_is_foreign(head),
        wants_age=bool(head.values("x-fairwarning-age")),
        form=0 if request.version is None else _FORMS[request.version.name],
    )


def _is_foreign(head: Head) -> bool:
    """Return whether a browser may have sent the request for a page that is not served here.

    A browser says in `Host` which name it looked up, and in `Origin` and `Sec-Fetch-Site` where the
    page came from. A page can't change these headers. The owner of a name can make it resolve to
    loopback (DNS rebinding), so names are refused, except localhost. IP addresses are allowed:
    clients that a firewall rule sends here use `Host: 169.254.169.254`.
    """
    hosts = [*head.values("host")]
    if target := _ABSOLUTE.match(head.target):
        hosts.append(target[1])
    if not all(_is_address_or_localhost(host) for host in hosts):
        return True
    own = f"http://{hosts[0]}".lower() if hosts else ""
    if any(origin.lower() != own for origin in head.values("origin")):
        return True
    return any(site not in ("none", "same-origin") for site in head.values("sec-fetch-site"))


@lru_cache(HOSTS_CACHED_MAX)
def _is_address_or_localhost(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name.lower() in ("", "localhost", "localhost."):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def read_event_ids(body: bytes) -> tuple[EventId, ...] | None:
    """Return the ids that a POST approves, in upper case and each once, or None for a wrong body.

    The body must be JSON; its Content-Type does not matter. A string that can't be an id becomes
    the empty id, which no event has. DocumentIncarnation is ignored, as in Azure.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    requests = document.get("StartRequests") if isinstance(document, dict) else None
    if not isinstance(requests, list) or not 1 <= len(requests) <= START_REQUESTS_MAX:
        return None
    found: dict[EventId, None] = {}
    for request in requests:
        id = request.get("EventId") if isinstance(request, dict) else None
        if not isinstance(id, str):
            return None
        # All our ids have this form, and a response must not repeat any longer text.
        found[EventId(id.strip().upper() if _GUID.fullmatch(id.strip()) else "")] = None
    return tuple(found)


def read_event_id(body: bytes) -> EventId | None:
    """Return the id of a body like `{"EventId": …}` in upper case, or None for any other body."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    id = document.get("EventId") if isinstance(document, dict) else None
    found = isinstance(id, str) and _GUID.fullmatch(id.strip())
    return EventId(found.group().upper()) if found else None
