"""Who asked what: told to those who watch, as tests and rehearsals do."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import Instant
from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.engine.request_log import Request, Requests


class Asked(Struct, frozen=True, kw_only=True):
    """A request that was in order, by an instance that we know."""

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
    """What went wrong with it on purpose."""


Watcher = Callable[[Asked], None]
AGENT_CHARS_MAX = 200
ID_CHARS_MAX = 64
APPROVALS_MAX = 20
"""What strangers write is kept only as far as a page shows it."""


class _Approval(Struct, rename="pascal"):
    event_id: str = ""


class _Approvals(Struct, rename="pascal"):
    start_requests: list[_Approval] = []


def noting(requests: Requests) -> Watcher:
    """Notes what instances of test fleets ask; of others nobody's requests are kept."""

    def hear(asked: Asked) -> None:
        if asked.is_test:
            requests.note(
                Request(
                    at_ms=asked.at_ms,
                    scope_id=asked.scope_id,
                    instance=asked.instance,
                    kind=asked.kind,
                    version=asked.version,
                    agent=asked.user_agent[:AGENT_CHARS_MAX],
                    events=_approved(asked),
                    fault=asked.fault,
                )
            )

    return hear


def _approved(asked: Asked) -> tuple[str, ...]:
    if asked.kind != "approve":
        return ()
    try:
        found = msgspec.json.decode(asked.body, type=_Approvals)
    except (msgspec.DecodeError, RecursionError):
        return ()  # the answer to it says what was wrong
    return tuple(each.event_id[:ID_CHARS_MAX] for each in found.start_requests[:APPROVALS_MAX])
