"""From one document to the next: what has changed, each change once. Pure.

Theory of operation. Only a document says what is, and some documents lie: a cache may hand
out an old one, a restarted service counts from 1 again. What is new in a document is believed
at once, because an event that was never seen cannot be old news. What is missing from it is
believed at once only if the document is newer than the last (a higher incarnation); else it
must stay missing for a few documents in a row. So an old document now and then ends nothing, and
a service that really began anew is followed after a few polls. Should old documents come for
longer than that, the event is told of again as soon as a document of its own time shows it: to
hear of it twice is better than to miss it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from fairwarning.client.model import Change, ChangeKind, Document, Event, Status

CONFIRMATIONS = 5
"""So many documents in a row must agree before one that is not newer is believed."""
OVER_KEPT_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that must be remembered between two documents, also over a restart."""

    incarnation: int = 0
    events: Mapping[str, Event] = field(default_factory=dict)
    """Those that are not over, as they were last seen."""
    approved: frozenset[str] = frozenset()
    """By us."""
    over: tuple[str, ...] = ()
    """Ids that will not come again; the newest at the end."""
    presumed: Mapping[str, int] = field(default_factory=dict)
    """Ids that are over on the word of doubtful documents, with the incarnation of the last good
    one; shown by a document that is as new as that, they were not over."""
    doubts: int = 0
    doubted: Document | None = None

    @property
    def is_in_doubt(self) -> bool:
        """The last document was not believed in full, so ask again soon."""
        return self.doubts > 0


def step(seen: Seen, document: Document, now: datetime) -> tuple[Seen, list[Change]]:
    """`seen` itself if there is nothing new, as in all but a few documents of a year."""
    if _is_known(seen, document):
        return seen, []
    shown = {each.id: each for each in document.events if _may_show(seen, document, each.id)}
    changes = _news(seen.events, shown)
    missing = [id for id in seen.events if id not in shown]
    is_newer = document.incarnation > seen.incarnation
    contradicts = bool(missing) or document.incarnation < seen.incarnation
    doubts = 0
    if not is_newer and contradicts:
        doubts = seen.doubts + 1 if _agree(seen.doubted, document) else 1
    is_believed = not 0 < doubts < CONFIRMATIONS
    if is_believed:
        changes += [_end(seen.events[id], now, is_approved=id in seen.approved) for id in missing]
    after = seen
    for change in changes:
        after = told(after, change)
    merged = {**after.events, **{id: _further(seen.events.get(id), e) for id, e in shown.items()}}
    if not is_believed:
        return replace(after, events=merged, doubts=doubts, doubted=document), changes
    if doubts:
        after = _presume(after, missing, seen.incarnation)
    return (
        replace(after, incarnation=document.incarnation, events=merged, doubts=0, doubted=None),
        changes,
    )


def told(seen: Seen, change: Change) -> Seen:
    """With one change of a document heard; `step` is this for all of them, and the document."""
    event = change.event
    others = {id: each for id, each in seen.events.items() if id != event.id}
    if change.kind in (ChangeKind.SCHEDULED, ChangeKind.STARTED):
        presumed = {id: at for id, at in seen.presumed.items() if id != event.id}
        return replace(seen, events={**others, event.id: event}, presumed=presumed)
    return replace(
        seen,
        events=others,
        approved=seen.approved - {event.id},
        over=(*seen.over, event.id)[-OVER_KEPT_MAX:],
    )


def approved(seen: Seen, id: str) -> Seen:
    return replace(seen, approved=seen.approved | {id.upper()})


def _is_known(seen: Seen, document: Document) -> bool:
    return (
        document.incarnation == seen.incarnation
        and not seen.doubts
        and len(document.events) == len(seen.events)
        and all(seen.events.get(each.id) == each for each in document.events)
    )


def _may_show(seen: Seen, document: Document, id: str) -> bool:
    if id in seen.presumed:
        return document.incarnation >= seen.presumed[id]
    return id not in seen.over


def _presume(seen: Seen, ids: Sequence[str], incarnation: int) -> Seen:
    presumed = {**seen.presumed, **dict.fromkeys(ids, incarnation)}
    kept = dict(list(presumed.items())[-OVER_KEPT_MAX:])
    over = tuple(id for id in seen.over if id not in kept)
    return replace(seen, over=over, presumed=kept)


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


def _further(before: Event | None, event: Event) -> Event:
    """An event never goes back, and its NotBefore is worth keeping once it has started."""
    if before is None:
        return event
    if before.status is Status.STARTED and event.status is Status.SCHEDULED:
        return before
    return event


def _agree(one: Document | None, other: Document) -> bool:
    """Whether a doubtful document is followed by one of the same story."""
    return one is not None and other.incarnation >= one.incarnation


def _end(event: Event, now: datetime, *, is_approved: bool) -> Change:
    """The service shows only that it is gone: cancelled and over look alike."""
    if event.status is Status.STARTED:
        return Change(kind=ChangeKind.FINISHED, event=event)
    is_due = event.not_before is not None and now >= event.not_before
    if is_approved or is_due:
        return Change(kind=ChangeKind.FINISHED, event=event, is_certain=False)
    return Change(kind=ChangeKind.CANCELLED, event=event, is_certain=False)
