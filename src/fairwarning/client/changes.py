"""From one document to the next: what has changed, each change once. Pure.

Theory of operation. Only a document says what is, and some documents lie: a cache may hand
out an old one, a restarted service counts from 1 again. What is new in a document is believed
at once, because an event that was never seen cannot be old news. What is missing from it is
believed at once only if the document is newer than the last (a higher incarnation); else it
must stay missing for a few documents in a row. So no event is taken for over while it is not,
and a service that really began anew is followed after a few polls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from fairwarning.client.model import Change, ChangeKind, Document, Event, Status

CONFIRMATIONS = 3
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
    doubts: int = 0
    doubted: Document | None = None

    @property
    def is_in_doubt(self) -> bool:
        """The last document was not believed in full, so ask again soon."""
        return self.doubts > 0


def step(seen: Seen, document: Document, now: datetime) -> tuple[Seen, list[Change]]:
    shown = {each.id: each for each in document.events if each.id not in seen.over}
    changes = _news(seen.events, shown)
    merged = {**seen.events, **{id: _further(seen.events.get(id), e) for id, e in shown.items()}}
    missing = [id for id in seen.events if id not in shown]
    is_newer = document.incarnation > seen.incarnation
    contradicts = bool(missing) or document.incarnation < seen.incarnation
    if not is_newer and contradicts:
        doubts = seen.doubts + 1 if _agree(seen.doubted, document) else 1
        if doubts < CONFIRMATIONS:
            return replace(seen, events=merged, doubts=doubts, doubted=document), changes
    changes += [_end(seen.events[id], now, is_approved=id in seen.approved) for id in missing]
    gone = frozenset(missing)
    return (
        Seen(
            incarnation=document.incarnation,
            events={id: event for id, event in merged.items() if id not in gone},
            approved=seen.approved - gone,
            over=(*seen.over, *missing)[-OVER_KEPT_MAX:],
        ),
        changes,
    )


def approved(seen: Seen, id: str) -> Seen:
    return replace(seen, approved=seen.approved | {id.upper()})


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
