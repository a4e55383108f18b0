"""From one document to the next: what has changed, each change once. Pure.

Theory of operation. Only a document says what is, and some documents lie: a cache may hand
out an old one, a restarted service counts from 1 again. What is new in a document is believed
at once, because an event that was never seen cannot be old news. What is missing from it is
believed at once only if the document is newer than all before (a higher incarnation); else it
must stay missing, for as long as `doubt` says. So old documents in between end nothing, and a
service that really began anew is followed after a while. Should old documents alone come for
longer than that, the event is told of again as soon as a document of its own time shows it: to
hear of it twice is better than to miss it. The next time it takes ten times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from fairwarning.client.model import Change, ChangeKind, Document, Event, Status
from fairwarning.client.watch_state import Seen

OVER_KEPT_MAX = 1_000
T = TypeVar("T")
__all__ = ["Seen", "approved", "not_approved", "step", "step_without_document", "told"]


def step(seen: Seen, document: Document, now: datetime) -> tuple[Seen, list[Change]]:
    """`seen` itself if there is nothing new, as in all but a few documents of a year."""
    if _is_known(seen, document):
        return seen, []
    shown = {each.id: each for each in document.events if _may_show(seen, document, each.id)}
    missed = {id: seen.missed.get(id, 0) + 1 for id in seen.events if id not in shown}
    doubts = _doubts(seen, document, missed)
    ended = [id for id, times in missed.items()
             if not doubts or times >= confirmations(seen, id, document, now)]  # fmt: skip
    changes = _news(seen.events, shown) + _ends(seen, ended, now)
    after = _told_all(seen, changes, is_doubtful=doubts > 0)
    is_believed = not doubts or (doubts >= CONFIRMATIONS and len(ended) == len(missed))
    further = {id: _further(seen, document, event, is_believed) for id, event in shown.items()}
    after = replace(
        after, events={**after.events, **further}, longest_lie=longest_lie(seen, document)
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
    """After an answer of nothing at all, as some hosts give when there are no events. Only what
    may be over can be, and only if nothing else is heard for long."""
    missed = {id: seen.missed.get(id, 0) + 1 for id, event in seen.events.items()
              if may_be_over(event, now, is_approved=id in seen.approved)}  # fmt: skip
    if not missed:
        return seen, []
    ended = [id for id, times in missed.items() if times >= confirmations_of_nothing(seen)]
    changes = _ends(seen, ended, now)
    after = _told_all(seen, changes, is_doubtful=True)
    still = {id: times for id, times in missed.items() if id not in ended}
    return replace(after, missed={**after.missed, **still}), changes


def told(seen: Seen, change: Change, after: Seen) -> Seen:
    """With one change heard of those on the way to `after`; all of them make up for `step`, but
    that the document is not done with."""
    id = change.event.id
    halfway = _told(seen, change, is_doubtful=id in after.presumed)
    if id not in halfway.events:
        return halfway
    # Or a document as old as the one before would count as one of the event's own time.
    return replace(halfway, shown={**halfway.shown, id: after.shown_in(id)})


def approved(seen: Seen, *ids: str) -> Seen:
    return replace(seen, approved=seen.approved | {id.upper() for id in ids})


def not_approved(seen: Seen, ids: Iterable[str]) -> Seen:
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
    """The how many-th document in a row this is that contradicts what was seen; 0 if it does not,
    or is newer."""
    is_newer = document.incarnation > seen.incarnation
    if is_newer or not (missed or document.incarnation < seen.incarnation):
        return 0
    return seen.doubts + 1 if _agree(seen.doubted, document) else 1


def _believe(seen: Seen, document: Document) -> Seen:
    return replace(
        seen, incarnation=document.incarnation, shown={}, missed={}, doubts=0, doubted=None
    )


def _newest(seen: Seen, document: Document, id: str) -> int:
    """Of the documents that showed the event, with this one."""
    before = seen.shown_in(id) if id in seen.events else 0
    return max(before, document.incarnation)


def _told_all(seen: Seen, changes: Sequence[Change], *, is_doubtful: bool) -> Seen:
    for change in changes:
        seen = _told(seen, change, is_doubtful=is_doubtful)
    return seen


def _told(seen: Seen, change: Change, *, is_doubtful: bool) -> Seen:
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


def _news(known: Mapping[str, Event], shown: Mapping[str, Event]) -> list[Change]:
    changes = []
    for id, event in shown.items():
        before = known.get(id)
        if before is None:
            kind = ChangeKind.STARTED if event.status is Status.STARTED else ChangeKind.SCHEDULED
            changes.append(Change(kind=kind, event=event))
        elif before.status is Status.SCHEDULED and event.status is Status.STARTED:
            changes.append(Change(kind=ChangeKind.STARTED, event=event))
    return changes


def _further(seen: Seen, document: Document, event: Event, is_believed: bool) -> Event:
    """An event never goes back: not from Started, and not to what an older document said of it."""
    before = seen.events.get(event.id)
    if before is None:
        return event
    has_moved = before.status is not event.status
    is_back = event.status is Status.SCHEDULED if has_moved else (
        not is_believed and document.incarnation < seen.shown_in(event.id))  # fmt: skip
    return before if is_back else event


def _agree(one: Document | None, other: Document) -> bool:
    """Whether a doubtful document is followed by one of the same story."""
    return one is None or other.incarnation >= one.incarnation


def _ends(seen: Seen, ids: Sequence[str], now: datetime) -> list[Change]:
    return [_end(seen.events[id], now, is_approved=id in seen.approved) for id in ids]


def _end(event: Event, now: datetime, *, is_approved: bool) -> Change:
    """The service shows only that it is gone: cancelled and over look alike."""
    is_over = may_be_over(event, now, is_approved=is_approved)
    kind = ChangeKind.FINISHED if is_over else ChangeKind.CANCELLED
    return Change(kind=kind, event=event, is_certain=event.status is Status.STARTED)


# How long an event must stay missing before it is taken to be over. Pure.
CONFIRMATIONS = 5
"""A document without the event that has the number of the one that showed it is of a service that
began anew, or that does not count. One with a higher number is newer, if both are of the life that
began when the numbers fell; that of the life before ended with the highest number."""
CONFIRMATIONS_OF_AN_END = 60
"""For an event that may well be over."""
CONFIRMATIONS_OF_A_CANCELLATION = 300
"""For one that is still to come: whoever takes it for cancelled is rebooted unprepared."""
LIES_TO_TRUTH = 10
"""An event is over when it was missing for so many times as long as ever by mistake."""
CONFIRMATIONS_MAX = 3_600
"""An end is not kept back for much longer than an hour, whatever the service did before."""


def may_be_over(event: Event, now: datetime, *, is_approved: bool) -> bool:
    """It has begun, or nothing kept it from beginning."""
    is_due = event.not_before is not None and now >= event.not_before
    return event.status is Status.STARTED or is_approved or is_due


def confirmations(seen: Seen, id: str, document: Document, now: datetime) -> int:
    """So many documents in a row that are not newer must miss the event."""
    shown_in = seen.shown_in(id)
    if document.incarnation == shown_in or shown_in < document.incarnation < seen.incarnation:
        return _by_experience(seen, CONFIRMATIONS)
    if may_be_over(seen.events[id], now, is_approved=id in seen.approved):
        return _by_experience(seen, CONFIRMATIONS_OF_AN_END)
    return _by_experience(seen, CONFIRMATIONS_OF_A_CANCELLATION)


def confirmations_of_nothing(seen: Seen) -> int:
    """So many answers in a row without any document must have come since it was last shown."""
    return _by_experience(seen, CONFIRMATIONS_OF_AN_END)


def longest_lie(seen: Seen, document: Document) -> int:
    """With what the events in this document tell about those that did not show them."""
    lies = [seen.longest_lie]
    for event in document.events:
        lies.append(seen.missed.get(event.id, 0))
        if document.incarnation >= seen.presumed.get(event.id, document.incarnation + 1):
            lies.append(_by_experience(seen, CONFIRMATIONS_OF_AN_END))
    return max(lies)


def _by_experience(seen: Seen, at_least: int) -> int:
    return min(max(at_least, LIES_TO_TRUTH * seen.longest_lie), CONFIRMATIONS_MAX)
