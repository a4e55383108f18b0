"""Watchers are called with every request of a known instance; tests and scenarios use them."""

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
    """`events`, `approve`, `instance` or `versions`."""
    version: str
    user_agent: str
    body: bytes
    fault: FaultKind | None
    """The injected fault that struck it; None: none."""


Watcher = Callable[[ObservedRequest], None]
# What clients write is kept only as far as a page shows it.
AGENT_CHARS_MAX = 200
ID_CHARS_MAX = 64
APPROVALS_MAX = 20


class _Approval(Struct, rename="pascal"):
    event_id: str = ""


class _Approvals(Struct, rename="pascal"):
    start_requests: list[_Approval] = []


def record_requests(requests: Requests) -> Watcher:
    """Return a watcher that logs the requests of test fleets, and none of real fleets."""

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
                )
            )

    return record


def _approved(observed: ObservedRequest) -> tuple[str, ...]:
    if observed.kind != "approve":
        return ()
    try:
        found = msgspec.json.decode(observed.body, type=_Approvals)
    except (msgspec.DecodeError, RecursionError):
        return ()  # the response to it says what was wrong
    return tuple(each.event_id[:ID_CHARS_MAX] for each in found.start_requests[:APPROVALS_MAX])
