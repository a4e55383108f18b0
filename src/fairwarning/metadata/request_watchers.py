"""Watchers are called with every request of a known instance. Tests and scenarios use them."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.engine.request_log import Request, Requests


class ObservedRequest(Struct, frozen=True, kw_only=True):
    """A well-formed request of a known instance."""

    at_ms: Instant
    scope_id: ScopeId
    is_test: bool
    instance: InstanceName
    kind: str
    """What was asked for: `events`, `approve`, `instance`, `versions` or `drained`."""
    version: str
    user_agent: str
    body: bytes
    fault: FaultKind | None
    """The injected fault that answered the request. It is None if there was no fault."""
    hint: str = ""
    """Why the request was refused and what an operator can do. It is empty if it was not."""


class RefusedRequest(Struct, frozen=True, kw_only=True):
    """A request that was refused before anybody knew which instance had sent it."""

    method: str
    target: str
    status: int
    answer: str
    """The body of the response, which says what was wrong."""


Watcher = Callable[[ObservedRequest], None]
RefusalWatcher = Callable[[RefusedRequest], None]
# Texts of clients are kept only up to the length that a page shows.
AGENT_CHARS_MAX = 200
ID_CHARS_MAX = 64  # An event id has 36 characters.
APPROVALS_MAX = 20  # A list of requests shows no more ids of one approval.


class _Approval(Struct, rename="pascal"):
    event_id: str = ""


class _Approvals(Struct, rename="pascal"):
    start_requests: list[_Approval] = []


def record_requests(requests: Requests) -> Watcher:
    """Return a watcher that adds the requests of test fleets, but not of real ones, to the log."""

    def record(observed: ObservedRequest) -> None:
        if observed.is_test:
            requests.note(
                Request(
                    at_ms=observed.at_ms,
                    scope_id=observed.scope_id,
                    instance=observed.instance,
                    kind=observed.kind,
                    version=observed.version,
                    agent=observed.user_agent[:AGENT_CHARS_MAX],
                    events=_approved(observed),
                    fault=observed.fault,
                    hint=observed.hint,
                )
            )

    return record


def _approved(observed: ObservedRequest) -> tuple[str, ...]:
    if observed.kind != "approve":
        return ()
    try:
        found = msgspec.json.decode(observed.body, type=_Approvals)
    except (msgspec.DecodeError, RecursionError):
        return ()  # The response to the request says what was wrong.
    return tuple(each.event_id[:ID_CHARS_MAX] for each in found.start_requests[:APPROVALS_MAX])
