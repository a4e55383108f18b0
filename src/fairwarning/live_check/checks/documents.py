"""Compares what instances were shown with the history: promises 6, 9 and 10."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from fairwarning.live_check.checks.evidence import ENDS, Evidence, Finding
from fairwarning.live_check.records import Poll

NOT_BEFORE = "2 enough notice"
SAME_NUMBER = "6 same number, same document"
ENDED = "9 every event ends"
ISOLATION = "10 isolation"
TRUE_HISTORY = "the history itself"

_FIRST_TYPES = {"Freeze", "Reboot", "Redeploy"}
_TYPES = {
    "2017-03-01": _FIRST_TYPES,
    "2017-08-01": _FIRST_TYPES,
    "2017-11-01": _FIRST_TYPES | {"Preempt"},
}
"""The event types that these api-versions show. Later versions show every type."""

DocumentStates = dict[tuple[str, int], dict[str, str]]
"""For each scope and incarnation, the status of each event that its document shows."""


def check_documents(evidence: Evidence) -> Iterator[Finding]:
    states = _document_states(evidence)
    digests: dict[tuple[str, str, str], str] = {}
    activations: dict[str, str] = {}
    looked_at: set[tuple[str, str]] = set()
    for poll in evidence.records.polls:
        scope = evidence.owners.get(poll.instance)
        if scope is None or poll.status not in (200, 304):
            continue
        if poll.tag is None:
            yield Finding(SAME_NUMBER, poll.instance, "a document came without a tag")
            continue
        _, activation = parse_tag(poll.tag)
        if activations.setdefault(scope, activation) != activation:
            text = f"the scope was activated anew: {poll.tag}"
            yield Finding(SAME_NUMBER, poll.instance, text)
        if poll.document is None:
            continue
        seen = digests.setdefault((scope, poll.version, poll.tag), poll.document)
        if seen != poll.document:
            text = f"tag {poll.tag} names two documents, {seen} and {poll.document}"
            yield Finding(SAME_NUMBER, poll.instance, text)
        if (scope, poll.document) not in looked_at:
            looked_at.add((scope, poll.document))
            yield from _look(evidence, states, scope, poll, poll.document)


def _document_states(evidence: Evidence) -> DocumentStates:
    """Returns what each incarnation should show, according to the history."""
    shown: dict[str, dict[str, str]] = {each.id: {} for each in evidence.records.scopes}
    states: DocumentStates = {(each.id, each.incarnation): {} for each in evidence.records.scopes}
    activations: dict[str, tuple[int, str, str]] = {}
    for entry in evidence.records.history:
        if entry.scope not in shown:
            continue
        state = shown[entry.scope]
        event = None if entry.event is None else evidence.events.get(entry.event)
        if event is not None and event.is_announced:
            if entry.kind == "Scheduled":
                state[event.id] = "Scheduled"
            elif entry.kind == "Started":
                state[event.id] = "Started"
            elif entry.kind in ENDS:
                state.pop(event.id, None)
        if entry.kind == "DocumentChanged":
            states[entry.scope, entry.data["incarnation"]] = dict(state)
        elif entry.kind == "Activated":
            activations[entry.scope] = (entry.at_ms, entry.by, entry.why)
        if activations.get(entry.scope) == (entry.at_ms, entry.by, entry.why):
            # The first document shows all of this commit, which may also have started an event.
            states[entry.scope, 1] = dict(state)
    return states


def _look(
    evidence: Evidence, states: DocumentStates, scope: str, poll: Poll, digest: str
) -> Iterator[Finding]:
    document = msgspec.json.decode(evidence.records.documents[digest])
    incarnation, events = document["DocumentIncarnation"], document["Events"]
    if f"{incarnation}" != parse_tag(poll.tag or "")[0]:
        text = f"the tag {poll.tag} names incarnation {incarnation}"
        yield Finding(SAME_NUMBER, poll.instance, text)
    for each in events:
        yield from _check_event(evidence, scope, poll, each)
    state = states.get((scope, incarnation))
    if state is None:
        text = f"incarnation {incarnation} was shown, and the history does not know it"
        yield Finding(SAME_NUMBER, poll.instance, text)
        return
    types = _TYPES.get(poll.version)
    expected = {
        id: status
        for id, status in state.items()
        if types is None or evidence.events[id].type in types
    }
    seen = {each["EventId"]: each["EventStatus"] for each in events}
    if seen != expected:
        text = f"incarnation {incarnation} showed {seen}, and the history has {expected}"
        yield Finding(SAME_NUMBER, poll.instance, text)


def _check_event(
    evidence: Evidence, scope: str, poll: Poll, shown: dict[str, Any]
) -> Iterator[Finding]:
    is_prefixed = poll.version == "2017-03-01" and evidence.scopes[scope].kind != "cloud-service"
    names = [name[1:] if is_prefixed else name for name in shown["Resources"]]
    event = evidence.events.get(shown["EventId"])
    strangers = [name for name in names if evidence.owners.get(name) != scope]
    if strangers or (event is not None and event.scope != scope):
        text = f"{poll.instance} was shown an event of {', '.join(names)}"
        yield Finding(ISOLATION, shown["EventId"], text)
    if event is None or not shown["NotBefore"]:
        return
    not_before_ms = parsedate_to_datetime(shown["NotBefore"]).timestamp() * 1000
    if round(not_before_ms) != event.not_before_ms:
        text = f"{poll.instance} was shown {shown['NotBefore']}, and NotBefore is another"
        yield Finding(NOT_BEFORE, shown["EventId"], text)


def check_seen(evidence: Evidence) -> Iterator[Finding]:
    """Checks that the instance that first saw an event had polled, in a version that shows it."""
    for event in evidence.events.values():
        for line in event.all("Seen"):
            name, at_ms = line.entry.data["name"], line.entry.at_ms + evidence.slack_ms
            is_shown = any(
                poll.sent.wall_ms <= at_ms and event.type in _TYPES.get(poll.version, {event.type})
                for poll in evidence.polls.get(name, ())
            )
            if not is_shown:
                text = f"the history says that {name} saw it, which asked for nothing that shows it"
                yield Finding(TRUE_HISTORY, event.id, text)


def check_reads_go_forward(evidence: Evidence) -> Iterator[Finding]:
    """Checks that no process shows an older document than its last, or than the tag of a poll. The
    first document of a process must not be older than any that was shown before it started.
    """
    newest: dict[str, int] = {}
    of_node: dict[tuple[str, str], int] = {}
    born_with: dict[str, dict[str, int]] = {}
    least: dict[int, tuple[int, str]] = {}
    for _, number, what, poll in _moments(evidence):
        if poll is None:
            born_with[what] = dict(newest)
            continue
        scope = evidence.owners[poll.instance]
        if what == "sent":
            tag = "0" if poll.sent_tag is None else parse_tag(poll.sent_tag)[0]
            least[number] = max(
                (int(tag), "the tag that it was sent"),
                (of_node.get((scope, poll.node), 0), "what it had shown before"),
                (born_with.get(poll.node, {}).get(scope, 0), "what was shown before it started"),
            )
            continue
        shown = int(parse_tag(poll.tag or "")[0])
        newest[scope] = max(newest.get(scope, 0), shown)
        of_node[scope, poll.node] = max(of_node.get((scope, poll.node), 0), shown)
        known, whence = least[number]
        if shown < known:
            text = f"{poll.node} showed incarnation {shown}, and {whence} was {known}"
            yield Finding(SAME_NUMBER, poll.instance, text)


def _moments(evidence: Evidence) -> list[tuple[float, int, str, Poll | None]]:
    """Returns the times at which polls were sent or answered and processes started, in order."""
    found: list[tuple[float, int, str, Poll | None]] = [
        (change.at.mono_s, -1, change.node, None)
        for change in evidence.records.nodes
        if change.change == "started"
    ]
    for number, poll in enumerate(evidence.records.polls):
        is_shown = poll.status in (200, 304) and poll.tag is not None
        if is_shown and poll.answered is not None and poll.instance in evidence.owners:
            found.append((poll.sent.mono_s, number, "sent", poll))
            found.append((poll.answered.mono_s, number, "shown", poll))
    return sorted(found, key=lambda each: (each[0], each[2] != "sent"))


def parse_tag(tag: str) -> tuple[str, str]:
    """Returns the first two parts of a tag, such as `"17-1a1e73d7482"`: incarnation, activation."""
    incarnation, _, rest = tag.removeprefix("W/").strip('"').partition("-")
    return incarnation, rest.partition("-")[0]


def check_ends(evidence: Evidence) -> Iterator[Finding]:
    for event in evidence.events.values():
        ends = event.all(*ENDS)
        if not ends:
            last = event.lines[-1].entry.kind
            yield Finding(ENDED, event.id, f"it has not ended; the last that is known is {last}")
        elif len(ends) > 1:
            kinds = ", ".join(each.entry.kind for each in ends)
            yield Finding(ENDED, event.id, f"it has ended several times: {kinds}")
        elif event.lines[-1].entry.kind not in (*ENDS, "Seen", "Drained"):
            text = f"the history goes on after its end: {event.lines[-1].entry.kind}"
            yield Finding(ENDED, event.id, text)
    for poll in evidence.records.polls:
        if poll.is_last and poll.status == 200 and poll.document is not None:
            document = msgspec.json.decode(evidence.records.documents[poll.document])
            for shown in document["Events"]:
                text = f"{poll.node} still shows it to {poll.instance} after its end"
                yield Finding(ENDED, shown["EventId"], text)
