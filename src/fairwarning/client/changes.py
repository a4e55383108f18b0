"""Compares each document with the ones before, and reports each change once. This module is pure.

Some documents are wrong: a cache may hand out an old one, and a restarted service counts
incarnations from 1 again. So new events and missing events are treated differently:

- A new event is believed at once, because an event that was never seen can't be old.
- A missing event counts as ended at once only if the document is newer than all before (a higher
  incarnation). Otherwise several documents in a row must miss the event (`confirmations`).

So a few old documents end no event, and a service that really began anew is followed after a
while. If old documents come for longer, an event can be reported as ended by mistake. It is
reported again as soon as a document that is new enough shows it, because a second report is better
than none. After such a mistake, an event must be missing for ten times as long as it was then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from fairwarning.client.model import Change, ChangeKind, Document, Event, Status
from fairwarning.client.watch_state import Seen

OVER_KEPT_MAX = 1_000
"""How many ids of finished events are remembered. A scope has far fewer at a time, and the saved
state stays small.
"""
CONFIRMATIONS = 5
"""How many documents in a row must miss an event before it counts as ended, if the service began
anew. We see that by the incarnation: it equals the one that last showed the event, or lies between
that one and the highest.
"""
CONFIRMATIONS_OF_AN_END = 60
"""How many documents in a row must miss an event that may be over before it counts as ended, if
their incarnations do not show that the service began anew.
"""
CONFIRMATIONS_OF_A_CANCELLATION = 300
"""How many documents in a row must miss an event that is still to come before it counts as
cancelled. The number is high, because after a wrong "cancelled" nobody prepares for the reboot.
"""
GAP_FACTOR = 10
"""An event must be missing for this many times `Seen.longest_gap` before it counts as ended."""
CONFIRMATIONS_MAX = 3_600
"""The most documents that must miss an event. With a poll each second, that is an hour."""
T = TypeVar("T")
__all__ = ["Seen", "approved", "not_approved", "step", "step_without_document", "with_change"]


def step(seen: Seen, document: Document, now: datetime) -> tuple[Seen, list[Change]]:
    """Return the state after this document, and the changes that the document brings.

    If nothing is new, the returned state is the object `seen` itself.
    """
    if _is_known(seen, document):
        return seen, []
    shown = {each.id: each for each in document.events if _may_show(seen, document, each.id)}
    missed = {id: seen.missed.get(id, 0) + 1 for id in seen.events if id not in shown}
    doubts = _doubts(seen, document, missed)
    ended = [id for id, times in missed.items()
             if not doubts or times >= confirmations(seen, id, document, now)]  # fmt: skip
    changes = _new_changes(seen.events, shown) + _end_changes(seen, ended, now)
    after = _apply_changes(seen, changes, is_doubtful=doubts > 0)
    is_believed = not doubts or (doubts >= CONFIRMATIONS and len(ended) == len(missed))
    later = {id: _later_state(seen, document, event, is_believed) for id, event in shown.items()}
    after = replace(
        after, events={**after.events, **later}, longest_gap=longest_gap(seen, document)
    )
    if is_believed:
        return _believe(after, document), changes
    return (
        replace(
            after,
            shown={**after.shown, **{id: _newest(seen, document, id) for id in shown}},
            missed={id: times for id, times in missed.items() if id not in ended},
            doubts=doubts,
            doubted=document,
        ),
        changes,
    )


def step_without_document(seen: Seen, now: datetime) -> tuple[Seen, list[Change]]:
    """Return the state after an empty response, and the changes that the response brings.

    Some hosts send an empty response when there are no events. Only events that may be over can
    end in this way, and only after many empty responses.
    """
    missed = {id: seen.missed.get(id, 0) + 1 for id, event in seen.events.items()
              if may_be_over(event, now, is_approved=id in seen.approved)}  # fmt: skip
    if not missed:
        return seen, []
    ended = [id for id, times in missed.items() if times >= confirmations_of_nothing(seen)]
    changes = _end_changes(seen, ended, now)
    after = _apply_changes(seen, changes, is_doubtful=True)
    still = {id: times for id, times in missed.items() if id not in ended}
    return replace(after, missed={**after.missed, **still}), changes


def with_change(seen: Seen, change: Change, after: Seen) -> Seen:
    """Return `seen` with one of the changes that `step` returned together with `after`.

    Call this for each change as it is reported. After the last change, use `after` itself.
    """
    id = change.event.id
    halfway = _apply_change(seen, change, is_doubtful=id in after.presumed)
    if id not in halfway.events:
        return halfway
    # Without this, a document as old as the one before would count as new enough for the event.
    return replace(halfway, shown={**halfway.shown, id: after.shown_in(id)})


def approved(seen: Seen, *ids: str) -> Seen:
    """Return `seen` with these events approved."""
    return replace(seen, approved=seen.approved | {id.upper() for id in ids})


def not_approved(seen: Seen, ids: Iterable[str]) -> Seen:
    """Return `seen` with these approvals taken back."""
    return replace(seen, approved=seen.approved.difference(ids))


def _is_known(seen: Seen, document: Document) -> bool:
    return (
        document.incarnation == seen.incarnation
        and not seen.doubts
        and not seen.missed
        and len(document.events) == len(seen.events)
        and all(seen.events.get(each.id) == each for each in document.events)
    )


def _may_show(seen: Seen, document: Document, id: str) -> bool:
    if id in seen.presumed:
        return document.incarnation >= seen.presumed[id]
    return id not in seen.over


def _doubts(seen: Seen, document: Document, missed: Mapping[str, int]) -> int:
    """Return how many documents in a row, up to this one, contradict what was seen.

    The number is 0 if this document contradicts nothing, or is newer than all before.
    """
    is_newer = document.incarnation > seen.incarnation
    if is_newer or not (missed or document.incarnation < seen.incarnation):
        return 0
    return seen.doubts + 1 if _agree(seen.doubted, document) else 1


def _believe(seen: Seen, document: Document) -> Seen:
    return replace(
        seen, incarnation=document.incarnation, shown={}, missed={}, doubts=0, doubted=None
    )


def _newest(seen: Seen, document: Document, id: str) -> int:
    """Return the highest incarnation that showed the event. This document shows it, too."""
    before = seen.shown_in(id) if id in seen.events else 0
    return max(before, document.incarnation)


def _apply_changes(seen: Seen, changes: Sequence[Change], *, is_doubtful: bool) -> Seen:
    for change in changes:
        seen = _apply_change(seen, change, is_doubtful=is_doubtful)
    return seen


def _apply_change(seen: Seen, change: Change, *, is_doubtful: bool) -> Seen:
    id = change.event.id
    others = _without(seen.events, id)
    if change.kind in (ChangeKind.SCHEDULED, ChangeKind.STARTED):
        events = {**others, id: change.event}
        return replace(seen, events=events, presumed=_without(seen.presumed, id))
    presumed = {**seen.presumed, id: seen.shown_in(id)} if is_doubtful else seen.presumed
    return replace(
        seen,
        events=others,
        approved=seen.approved - {id},
        over=seen.over if is_doubtful else (*seen.over, id)[-OVER_KEPT_MAX:],
        presumed=dict(list(presumed.items())[-OVER_KEPT_MAX:]),
        shown=_without(seen.shown, id),
        missed=_without(seen.missed, id),
    )


def _without(values: Mapping[str, T], id: str) -> dict[str, T]:
    return {each: value for each, value in values.items() if each != id}


def _new_changes(known: Mapping[str, Event], shown: Mapping[str, Event]) -> list[Change]:
    changes = []
    for id, event in shown.items():
        before = known.get(id)
        if before is None:
            kind = ChangeKind.STARTED if event.status is Status.STARTED else ChangeKind.SCHEDULED
            changes.append(Change(kind=kind, event=event))
        elif before.status is Status.SCHEDULED and event.status is Status.STARTED:
            changes.append(Change(kind=ChangeKind.STARTED, event=event))
    return changes


def _later_state(seen: Seen, document: Document, event: Event, is_believed: bool) -> Event:
    """Return the later one of an event's known state and the state in this document.

    An event never goes back from Started, nor to the state that an older document shows.
    """
    before = seen.events.get(event.id)
    if before is None:
        return event
    has_moved = before.status is not event.status
    is_back = event.status is Status.SCHEDULED if has_moved else (
        not is_believed and document.incarnation < seen.shown_in(event.id))  # fmt: skip
    return before if is_back else event


def _agree(one: Document | None, other: Document) -> bool:
    """Return whether two doubtful documents in a row can come from the same service."""
    return one is None or other.incarnation >= one.incarnation


def _end_changes(seen: Seen, ids: Sequence[str], now: datetime) -> list[Change]:
    return [_end_change(seen.events[id], now, is_approved=id in seen.approved) for id in ids]


def _end_change(event: Event, now: datetime, *, is_approved: bool) -> Change:
    """Return FINISHED for an event that may be over, and else CANCELLED.

    This is partly a guess, because the service shows the end of an event only by leaving it out.
    """
    is_over = may_be_over(event, now, is_approved=is_approved)
    kind = ChangeKind.FINISHED if is_over else ChangeKind.CANCELLED
    return Change(kind=kind, event=event, is_certain=event.status is Status.STARTED)


def may_be_over(event: Event, now: datetime, *, is_approved: bool) -> bool:
    """Return whether the event has begun or could have begun (it was approved, or is due)."""
    is_due = event.not_before is not None and now >= event.not_before
    return event.status is Status.STARTED or is_approved or is_due


def confirmations(seen: Seen, id: str, document: Document, now: datetime) -> int:
    """Return how many documents in a row must miss the event before it counts as ended.

    This is for documents that are not newer than all before.
    """
    shown_in = seen.shown_in(id)
    if document.incarnation == shown_in or shown_in < document.incarnation < seen.incarnation:
        return _by_experience(seen, CONFIRMATIONS)
    if may_be_over(seen.events[id], now, is_approved=id in seen.approved):
        return _by_experience(seen, CONFIRMATIONS_OF_AN_END)
    return _by_experience(seen, CONFIRMATIONS_OF_A_CANCELLATION)


def confirmations_of_nothing(seen: Seen) -> int:
    """Return how many empty responses in a row end an event that may be over."""
    return _by_experience(seen, CONFIRMATIONS_OF_AN_END)


def longest_gap(seen: Seen, document: Document) -> int:
    """Return the new `Seen.longest_gap`. An event that is shown again after a gap may raise it."""
    gaps = [seen.longest_gap]
    for event in document.events:
        gaps.append(seen.missed.get(event.id, 0))
        if document.incarnation >= seen.presumed.get(event.id, document.incarnation + 1):
            gaps.append(_by_experience(seen, CONFIRMATIONS_OF_AN_END))
    return max(gaps)


def _by_experience(seen: Seen, at_least: int) -> int:
    return min(max(at_least, GAP_FACTOR * seen.longest_gap), CONFIRMATIONS_MAX)
