"""Checks that no impact is early, and that there is enough notice: promises 1 and 2."""

from collections.abc import Iterator
from datetime import timedelta

from fairwarning.live_check.checks.evidence import EventHistory, Evidence, Finding, approver
from fairwarning.live_check.records import At, DriverCall, Scope

NEVER_EARLY = "1 never early"
ENOUGH_NOTICE = "2 enough notice"

_POLICY_OF = {"restart": "policy:userInitiatedReboot", "redeploy": "policy:userInitiatedRedeploy"}
_NEVER_ANNOUNCED = ("start", "stop", "deallocate", "reimage")
"""Operations that are never announced. The fleet has no notice for reimages."""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}


def check_never_early(evidence: Evidence) -> Iterator[Finding]:
    """Checks that no impact began before NotBefore, unless the event was approved."""
    for key, calls in evidence.calls.items():
        event = evidence.events.get(key)
        if event is None:
            continue
        for call in calls:
            early_ms = event.not_before_ms - call.at.wall_ms
            if call.what != "begin" or early_ms <= evidence.slack_ms:
                continue
            if not _may_be_early(evidence, event, call):
                yield Finding(
                    NEVER_EARLY,
                    key,
                    f"{event.type} of {', '.join(event.resources)} began {early_ms:.0f} ms before "
                    "NotBefore, and nobody had approved it",
                )


def _may_be_early(evidence: Evidence, event: EventHistory, call: DriverCall) -> bool:
    if evidence.is_happened_already(event):
        return True
    approvers = [approver(line.entry) for line in event.all("Approved")]
    policy = _POLICY_OF.get(event.operation or "")
    if policy in approvers and policy in evidence.scopes[event.scope].policies:
        return True
    return bool(approvers) and _was_approved(evidence, event, call.at)


def _was_approved(evidence: Evidence, event: EventHistory, before: At) -> bool:
    """Returns whether somebody sent an approval of the event before this time, answered or not."""
    by_instance = any(
        approval.sent.mono_s < before.mono_s
        and evidence.owners.get(approval.instance) == event.scope
        for approval in evidence.approvals.get(event.id, ())
    )
    return by_instance or any(
        request.what == "approve"
        and f"/events/{event.id}/" in request.path
        and request.sent.mono_s < before.mono_s
        for request in evidence.records.requests
    )


def check_notice(evidence: Evidence) -> Iterator[Finding]:
    """Checks that each event had at least the notice that the fleet file or its caller asks for."""
    watched_s = _first_documents(evidence)
    for event in evidence.events.values():
        request = evidence.creating_request(event)
        if request is not None:
            before_ms = request.sent.wall_ms - event.created_ms
            if before_ms > evidence.slack_ms:
                text = f"its creation is dated {before_ms:.0f} ms before anybody asked for it"
                yield Finding(ENOUGH_NOTICE, event.id, text)
        if evidence.is_happened_already(event):
            continue
        if not event.is_announced:
            sent_s = None if request is None else request.sent.mono_s
            if not _may_be_silent(evidence.scopes[event.scope], event, watched_s, sent_s):
                text = f"{event.operation or event.type} of {event.resources} was not announced"
                yield Finding(ENOUGH_NOTICE, event.id, text)
            continue
        least_ms = _least_notice_ms(evidence, event)
        given_ms = event.not_before_ms - event.created_ms
        if given_ms < least_ms:
            text = f"{event.type} has {given_ms} ms of notice and should have {least_ms:.0f}"
            yield Finding(ENOUGH_NOTICE, event.id, text)


def check_leaving(evidence: Evidence) -> Iterator[Finding]:
    """Checks that each missing instance was deleted or evicted by an event."""
    taken: set[str] = set()
    for entry in evidence.records.history:
        event = evidence.events.get(entry.event or "")
        is_taker = event is not None and event.type in ("Terminate", "Preempt")
        if event is not None and is_taker and entry.kind == "Completed":
            taken.update(event.resources)
        elif entry.kind == "InstanceDeleted" and entry.data["name"] not in taken:
            name = entry.data["name"]
            yield Finding(ENOUGH_NOTICE, name, f"{name} is gone without an event that took it away")


def _first_documents(evidence: Evidence) -> dict[str, float]:
    """Returns when each scope's first poll was answered, or 0 if it was active at the start."""
    found = {scope.id: 0.0 for scope in evidence.records.scopes if scope.activated}
    for poll in evidence.records.polls:
        if poll.status == 200 and poll.answered is not None:
            scope = evidence.owners.get(poll.instance, "")
            found[scope] = min(found.get(scope, poll.answered.mono_s), poll.answered.mono_s)
    return found


def _may_be_silent(
    scope: Scope, event: EventHistory, watched_s: dict[str, float], sent_s: float | None
) -> bool:
    """Returns whether the operation needs no announcement, or nobody had polled yet."""
    if event.operation is None:
        return False
    if event.operation in _NEVER_ANNOUNCED:
        return True
    if event.operation == "delete" and scope.terminate_notice_s is None:
        return True
    since_s = watched_s.get(scope.id)
    return since_s is None or (sent_s is not None and sent_s < since_s)


def _least_notice_ms(evidence: Evidence, event: EventHistory) -> float:
    scope = evidence.scopes[event.scope]
    if event.operation == "delete":
        return (scope.terminate_notice_s or 0) * 1000
    minimum_ms = scope.minimum_notice_s.get(event.type, 0) * 1000
    request = evidence.creating_request(event)
    if event.operation is not None or request is None or not scope.test:
        return minimum_ms
    if request.what != "schedule":
        # In a test fleet an event may be postponed to any time that has not passed.
        return 0
    notice = (request.body or {}).get("notice")
    if notice is not None:
        return seconds_of(notice) * 1000
    return (scope.terminate_notice_s or 0) * 1000 if event.type == "Terminate" else minimum_ms


def seconds_of(text: str) -> float:
    """Returns the seconds of a duration such as `90s` or `20m`."""
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])}).total_seconds()
