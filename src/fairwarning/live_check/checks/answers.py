"""Compares what callers and instances were told with the history: promises 5 and 7."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from fairwarning.live_check.checks.evidence import ENDS, EventHistory, Evidence, Finding, approver
from fairwarning.live_check.records import Approval, Entry, Request

NOTHING_LOST = "5 nothing acknowledged is lost"
NOT_BEFORE = "2 enough notice"
APPROVING = "7 approving is idempotent and covers all resources"
ISOLATION = "10 isolation"
NO_BUG = "the program itself"

_UNKNOWN = ("idempotency-in-progress", "resource-busy")
"""Refusals that do not tell whether an earlier try of the request was carried out."""
_RAISE_ONE = (
    "schedule", "postpone", "restart", "redeploy", "reimage", "delete", "evict", "start", "stop",
    "deallocate",
)  # fmt: skip


def check_answers(evidence: Evidence) -> Iterator[Finding]:
    history = {entry.position: entry for entry in evidence.records.history}
    raised = Counter(event.why for event in evidence.events.values())
    for request in evidence.records.requests:
        if request.status is None:
            continue
        if request.status == 500:
            yield Finding(NO_BUG, request.label, f"{request.what} was answered with 500")
        elif request.status < 300 and request.answer is not None:
            yield from _told(evidence, request, request.answer, history)
        elif _is_refused(request) and request.what in _RAISE_ONE and raised[request.label]:
            code = (request.answer or {}).get("code")
            text = f"{request.what} was refused ({code}), and the history has what it raised"
            yield Finding(NOTHING_LOST, request.label, text)
    for label, tries in evidence.requests.items():
        if tries[0].what in _RAISE_ONE and raised[label] > 1:
            text = f"one {tries[0].what} has raised {raised[label]} events"
            yield Finding(NOTHING_LOST, label, text)
        ids = {id for each in tries if (id := _told_event(each)) is not None}
        if len(ids) > 1:
            text = f"the same Idempotency-Key was answered with {', '.join(sorted(ids))}"
            yield Finding(NOTHING_LOST, label, text)


def _is_refused(request: Request) -> bool:
    code = (request.answer or {}).get("code")
    return request.status is not None and 400 <= request.status < 500 and code not in _UNKNOWN


def _told_event(request: Request) -> str | None:
    """Returns the id of the event in a successful answer, or None."""
    if request.status is None or request.status >= 300 or request.answer is None:
        return None
    return request.answer.get("id")


def _told(
    evidence: Evidence, request: Request, answer: Mapping[str, Any], history: Mapping[str, Entry]
) -> Iterator[Finding]:
    shown = [answer] if "id" in answer else list(answer.get("events", ()))
    for each in shown:
        event = evidence.events.get(each["id"])
        if event is None:
            text = f"{request.what} was answered with {request.status}, and the event is gone"
            yield Finding(NOTHING_LOST, each["id"], text)
            continue
        yield from _same(event, each)
        yield from _done(request, event)
        for line in each["timeline"]:
            kept = history.get(line["position"])
            # A server of an older version shows fewer fields than the history has.
            is_kept = kept is not None and line["data"].items() <= kept.data.items()
            if kept is None or kept.kind != line["kind"] or not is_kept:
                text = f"a caller was shown {line['kind']} at {line['position']}, and it is gone"
                yield Finding(NOTHING_LOST, each["id"], text)
    for name in answer.get("added", ()):
        if name not in evidence.owners:
            yield Finding(NOTHING_LOST, request.label, f"{name} was added, and it is gone")


def _same(event: EventHistory, shown: Mapping[str, Any]) -> Iterator[Finding]:
    not_before = datetime.fromisoformat(shown["notBefore"]).timestamp() * 1000
    if round(not_before) != event.not_before_ms:
        text = f"a caller was told {shown['notBefore']}, and NotBefore is another"
        yield Finding(NOT_BEFORE, event.id, text)
    told = (shown["scope"], shown["type"], shown["resources"])
    if told != (event.scope, event.type, event.resources):
        text = "a caller was told another scope, type or resources than the history has"
        yield Finding(NOTHING_LOST, event.id, text)


def _done(request: Request, event: EventHistory) -> Iterator[Finding]:
    match request.what:
        case "cancel":
            is_done = any(each.entry.why == request.label for each in event.all("Cancelled"))
        case "approve":
            is_done = event.first("Approved", "Started") is not None
        case _:
            is_done = event.why == request.label
    if not is_done:
        text = f"{request.what} ({request.label}) was answered with success, and was not done"
        yield Finding(NOTHING_LOST, event.id, text)


def check_approvals(evidence: Evidence) -> Iterator[Finding]:
    for approval in evidence.records.approvals:
        if approval.status is None:
            continue
        if approval.status == 500:
            text = f"an approval by {approval.instance} was answered with 500"
            yield Finding(NO_BUG, approval.events[0], text)
        elif approval.is_foreign:
            if approval.status == 200:
                text = f"{approval.instance} of another scope was let approve it"
                yield Finding(ISOLATION, approval.events[0], text)
        elif approval.status == 200:
            yield from _approved(evidence, approval)
        elif approval.status == 400 and approval.instance not in evidence.deleted:
            text = f"{approval.instance} was not let approve its own event: {approval.answer}"
            yield Finding(APPROVING, approval.events[0], text)
    for event in evidence.events.values():
        yield from _approvers(evidence, event)


def _approved(evidence: Evidence, approval: Approval) -> Iterator[Finding]:
    """Checks that an accepted approval is in the history, or its event had started or ended."""
    assert approval.answered is not None
    for id in approval.events:
        event = evidence.events.get(id)
        if event is None:
            text = f"{approval.instance} approved it with success, and the event is gone"
            yield Finding(NOTHING_LOST, id, text)
            continue
        by_name = f"instance:{approval.instance}"
        is_noted = any(approver(each.entry) == by_name for each in event.all("Approved"))
        over = event.first("Started", *ENDS)
        in_time_ms = approval.answered.wall_ms + evidence.slack_ms
        if not is_noted and (over is None or over.entry.at_ms > in_time_ms):
            text = f"{approval.instance} approved it with success, and the history has no approval"
            yield Finding(NOTHING_LOST, id, text)


def _approvers(evidence: Evidence, event: EventHistory) -> Iterator[Finding]:
    counted = Counter(approver(line.entry) for line in event.all("Approved"))
    for name, count in counted.items():
        if count > 1:
            yield Finding(APPROVING, event.id, f"the history has {count} approvals by {name}")
        kind, _, who = name.partition(":")
        if kind == "instance" and evidence.owners.get(who) != event.scope:
            yield Finding(ISOLATION, event.id, f"{who} approved it, and is not of its scope")
