"""Which changes lead from one document to the next, each reported once. This module is pure.

Some documents are wrong: a cache may hand out an old one, and a restarted service counts from 1
again. So the two kinds of news are treated differently:

- What is new in a document is believed at once, because an event that was never seen can't be old.
- What is missing is believed at once only if the document is newer than all before (a higher
  incarnation). Else it must stay missing for several documents (`confirmations`).

So old documents in between end nothing, and a service that really began anew is followed after a
while. If only old documents come for longer than that, the event is reported again as soon as a
document of its own time shows it: hearing of it twice is better than missing it. The next time it
takes ten times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from fairwarning.client.model import Change, ChangeKind, Document, Event, Status
from fairwarning.client.watch_state import Seen

OVER_KEPT_MAX = 1_000
"""How many ids of finished events are remembered."""
CONFIRMATIONS = 5
"""How many documents in a row must miss an event, if they have the number of the one that showed
it, or a higher one below the highest. Such documents come from a service that began anew.
"""
CONFIRMATIONS_OF_AN_END = 60
"""The same for other documents, and an event that may well be over."""
CONFIRMATIONS_OF_A_CANCELLATION = 300
"""The same for an event that is still to come: a wrong "cancelled" means an unprepared reboot."""
LIES_TO_TRUTH = 10
"""An event must be missing this many times as long as an event ever was by mistake."""
CONFIRMATIONS_MAX = 3_600
"""No end is kept back for much longer than an hour, whatever the service did before."""
T = TypeVar("T")
__all__ = ["Seen", "approved", "not_approved", "step", "step_without_document", "with_change"]


def step(seen: Seen, document: Document, now: datetime) -> tuple[Seen, list[Change]]:
    """Return what is known after this document, and the changes that it brings.

    If nothing is new, which is nearly always so, the result is the very same `seen`.
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
        after, events={**after.events, **later}, longest_lie=longest_lie(seen, document)
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
    """Return the same after a response without any bytes, as some hosts give without events.

    Only events that may be over can end by it, and only if it goes on for long.
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
    """Return `seen` with one of the changes that `step` found on the way to `after`.

    Call it once for each change that a caller was given; then replace the result by `after`.
    """
    id = change.event.id
    halfway = _apply_change(seen, change, is_doubtful=id in after.presumed)
    if id not in halfway.events:
        return halfway
    # Without this, a document as old as the one before would count as of the event's own time.
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
    """Return how many documents in a row contradict what was seen, with this one.

    It is 0 if this one does not contradict it, or is newer.
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
    """Return the highest incarnation that showed the event, this document's included."""
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
    """Return the later state of an event. It never goes back: not from Started, and not to what an
    older document shows.
    """
    before = seen.events.get(event.id)
    if before is None:
        return event
    has_moved = before.status is not event.status
    is_back = event.status is Status.SCHEDULED if has_moved else (
        not is_believed and document.incarnation < seen.shown_in(event.id))  # fmt: skip
    return before if is_back else event


def _agree(one: Document | None, other: Document) -> bool:
    """Return whether two doubtful documents in a row can be of the same service."""
    return one is None or other.incarnation >= one.incarnation


def _end_changes(seen: Seen, ids: Sequence[str], now: datetime) -> list[Change]:
    return [_end_change(seen.events[id], now, is_approved=id in seen.approved) for id in ids]


def _end_change(event: Event, now: datetime, *, is_approved: bool) -> Change:
    """Return the change for a missing event; the service shows no other sign of its end."""
    is_over = may_be_over(event, now, is_approved=is_approved)
    kind = ChangeKind.FINISHED if is_over else ChangeKind.CANCELLED
    return Change(kind=kind, event=event, is_certain=event.status is Status.STARTED)


def may_be_over(event: Event, now: datetime, *, is_approved: bool) -> bool:
    """Return whether the event has begun, or nothing kept it from beginning."""
    is_due = event.not_before is not None and now >= event.not_before
    return event.status is Status.STARTED or is_approved or is_due


def confirmations(seen: Seen, id: str, document: Document, now: datetime) -> int:
    """Return how many documents in a row, none of them newer, must miss the event."""
    shown_in = seen.shown_in(id)
    if document.incarnation == shown_in or shown_in < document.incarnation < seen.incarnation:
        return _by_experience(seen, CONFIRMATIONS)
    if may_be_over(seen.events[id], now, is_approved=id in seen.approved):
        return _by_experience(seen, CONFIRMATIONS_OF_AN_END)
    return _by_experience(seen, CONFIRMATIONS_OF_A_CANCELLATION)


def confirmations_of_nothing(seen: Seen) -> int:
    """Return how many empty responses in a row end an event that may be over."""
    return _by_experience(seen, CONFIRMATIONS_OF_AN_END)


def longest_lie(seen: Seen, document: Document) -> int:
    """Return the longest run of wrong documents, with what this document's events show about it."""
    lies = [seen.longest_lie]
    for event in document.events:
        lies.append(seen.missed.get(event.id, 0))
        if document.incarnation >= seen.presumed.get(event.id, document.incarnation + 1):
            lies.append(_by_experience(seen, CONFIRMATIONS_OF_AN_END))
    return max(lies)


def _by_experience(seen: Seen, at_least: int) -> int:
    return min(max(at_least, LIES_TO_TRUTH * seen.longest_lie), CONFIRMATIONS_MAX)
