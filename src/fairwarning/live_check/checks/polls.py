"""Checks that polls and writes go on while something else is broken."""

from collections.abc import Iterator
from typing import NamedTuple

from fairwarning.live_check.checks.documents import parse_tag
from fairwarning.live_check.checks.evidence import Evidence, Finding
from fairwarning.live_check.records import Approval, NodeChange, Poll, Request

POLLS_GO_ON = "polls go on"
WRITES_COME_BACK = "writes come back"

_BACK_S_MAX = 60.0
"""How soon a write must succeed after a fault. This is long, because the machine may be busy; the
figures have the real time.
"""


class PollFailures(NamedTuple):
    failed: list[Poll]
    """Polls that got no answer, or an error, from a process that could answer."""
    behind: list[Poll]
    """Polls with 503 from a process that had not yet read the document whose tag they sent. Such a
    process must not show an older document, so without the store it has no other answer.
    """


def poll_failures(evidence: Evidence) -> PollFailures:
    """Returns the polls that failed. A process that was killed, stopped or paused meanwhile need
    not answer.
    """
    silences = _silences(evidence.records.nodes)
    found = PollFailures([], [])
    for poll in evidence.records.polls:
        is_silent = any(
            began_s <= _end_s(poll) and poll.sent.mono_s <= ended_s
            for began_s, ended_s in silences.get(poll.node, ())
        )
        if _is_failed(poll) and not is_silent:
            (found.behind if _is_behind(evidence, poll) else found.failed).append(poll)
    return found


def _is_behind(evidence: Evidence, poll: Poll) -> bool:
    if poll.status != 503 or poll.sent_tag is None:
        return False
    return int(parse_tag(poll.sent_tag)[0]) > _incarnation_known(evidence, poll)


def _incarnation_known(evidence: Evidence, poll: Poll) -> int:
    """Returns the newest incarnation that the process must have known when it got the poll: it had
    shown it, or somebody was shown it before the process started.
    """
    scope = evidence.owners.get(poll.instance)
    started_s = max(
        (
            each.at.mono_s
            for each in evidence.records.nodes
            if each.node == poll.node and each.change == "started"
        ),
        default=0.0,
    )
    return max(
        (
            int(parse_tag(each.tag)[0])
            for each in evidence.records.polls
            if each.tag is not None
            and each.answered is not None
            and evidence.owners.get(each.instance) == scope
            and each.answered.mono_s < (poll.sent.mono_s if each.node == poll.node else started_s)
        ),
        default=0,
    )


def _is_failed(poll: Poll) -> bool:
    return poll.failed is not None or (poll.status is not None and poll.status >= 500)


def _end_s(poll: Poll) -> float:
    end = poll.answered or poll.failed
    return poll.sent.mono_s if end is None else end.mono_s


def _silences(changes: list[NodeChange]) -> dict[str, list[tuple[float, float]]]:
    """Returns for each process the times at which it could not answer."""
    found: dict[str, list[tuple[float, float]]] = {}
    paused_s: dict[str, float] = {}
    for change in changes:
        if change.change in ("killed", "stopped"):
            found.setdefault(change.node, []).append((change.at.mono_s, float("inf")))
        elif change.change == "died":
            # Nobody saw when. That it died is a finding of its own.
            found.setdefault(change.node, []).append((0.0, float("inf")))
        elif change.change == "paused":
            paused_s[change.node] = change.at.mono_s
        elif change.change == "continued":
            began_s = paused_s.pop(change.node)
            found.setdefault(change.node, []).append((began_s, change.at.mono_s))
    for node, began_s in paused_s.items():
        found.setdefault(node, []).append((began_s, float("inf")))
    return found


def check_polls_go_on(evidence: Evidence) -> Iterator[Finding]:
    for poll in poll_failures(evidence).failed:
        how = "with no answer" if poll.status is None else f"with {poll.status}"
        yield Finding(POLLS_GO_ON, poll.instance, f"a poll at {poll.node} ended {how}")


def check_writes_come_back(evidence: Evidence) -> Iterator[Finding]:
    """Checks that a request or an approval succeeded soon after each fault."""
    records = evidence.records
    answers: list[Request | Approval] = [*records.requests, *records.approvals]
    done_s = [
        each.answered.mono_s
        for each in answers
        if each.answered is not None and each.status is not None and each.status < 300
    ]
    last_s = max((each.sent.mono_s for each in answers), default=0.0)
    for fault in records.faults:
        from_s = max(fault.ended.mono_s, fault.writable.mono_s)
        is_tried = last_s > from_s + _BACK_S_MAX
        if is_tried and not any(from_s <= each <= from_s + _BACK_S_MAX for each in done_s):
            text = f"nothing was written within {_BACK_S_MAX:.0f} s after it ({fault.detail})"
            yield Finding(WRITES_COME_BACK, fault.name, text)
