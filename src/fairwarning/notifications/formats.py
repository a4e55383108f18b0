"""Makes the message about a journal entry in the format of the target."""

from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import fold
from fairwarning.core.model import Event, EventId, Roster, Scope, ScopeKind
from fairwarning.core.refusals import Refused
from fairwarning.core.transitions import EventTransition, Scheduled, Started, Unknown
from fairwarning.engine.protocols import Entry, Position, Store
from fairwarning.notifications.event_grid import grid_message, grid_trial
from fairwarning.notifications.maintenance_events import maintenance_events
from fairwarning.notifications.messages import message_of, trial_message
from fairwarning.notifications.model import Format, Message, Target


async def is_tellable(store: Store, target: Target, entry: Entry, event: Event | None) -> bool:
    """Return whether the format has a message. Event Grid has one only for visible events."""
    if target.format is not Format.EVENT_GRID:
        return True
    return event is not None and event.announced and not await starts_at_once(store, entry)


async def message_to(store: Store, target: Target, entry: Entry, event: Event | None) -> Message:
    if target.format is not Format.EVENT_GRID:
        return message_of(entry, event, target.template)
    assert event is not None, "a target of this format hears of events only"
    scope = await store.read(entry.scope_id)
    more = await maintenance_events(store, entry, event)
    return grid_message(entry, event, scope.roster.location, target.template, more)


def trial_to(target: Target, id: str, now: Instant) -> Message:
    make = grid_trial if target.format is Format.EVENT_GRID else trial_message
    return make(id, target.name, now)


PAGE_ENTRIES_MAX = 200  # An event seldom has more entries than one page.
_NOBODY = Roster(kind=ScopeKind.VM, subscription="", resource_group="", resource="")
"""An empty roster, for folding an event's transitions, which do not use the roster."""


async def event_at(store: Store, entry: Entry) -> Event | None:
    """Return the event as it was after this entry. It is None if the entry is about no event."""
    transition = entry.transition
    if not isinstance(transition, EventTransition):
        return None
    if isinstance(transition, Scheduled):
        return transition.event
    earlier = [each.transition for each in await _lines(store, entry.position, transition.event_id)]
    if any(isinstance(each, Unknown) for each in earlier):
        return await _as_stored(store, transition.event_id)
    told = [each for each in reversed(earlier) if isinstance(each, EventTransition)]
    scope = fold(Scope(id=entry.scope_id, roster=_NOBODY), [*told, transition])
    return scope.events[transition.event_id]


async def starts_at_once(store: Store, entry: Entry) -> bool:
    """Return whether this entry schedules an event that starts in the same commit."""
    if not isinstance(entry.transition, Scheduled):
        return False
    lines = await _lines(store, None, entry.transition.event_id)
    return any(each.revision == entry.revision and isinstance(each.transition, Started)
               for each in lines)  # fmt: skip


async def _as_stored(store: Store, event_id: EventId) -> Event | None:
    """Return the event as it is now, for when an earlier entry cannot be read."""
    try:
        return (await store.find_event(event_id))[1]
    except Refused:
        return None


async def _lines(store: Store, before: Position | None, event_id: EventId) -> list[Entry]:
    """Return all entries of the event before `before`, newest first. They are few."""
    found: list[Entry] = []
    while page := await store.history(before=before, event_id=event_id, limit=PAGE_ENTRIES_MAX):
        before = page[-1].position
        found += page
    return found
