"""An event as one line of the journal left it, worked out from the lines before.

What the store says of an event is how it is now, which may be later: a notice of an approval
would say that the event is over. And the same line must give the same message at every try.
"""

from fairwarning.core.lifecycle import fold
from fairwarning.core.model import Event, EventId, Roster, Scope, ScopeKind
from fairwarning.core.refusals import Refused
from fairwarning.core.transitions import EventTransition, Scheduled, Started, Unknown
from fairwarning.engine.protocols import Entry, Position, Store

PAGE_ENTRIES_MAX = 200
_NOBODY = Roster(kind=ScopeKind.VM, subscription="", resource_group="", resource="")
"""An event's own transitions don't look at the roster."""


async def event_at(store: Store, entry: Entry) -> Event | None:
    """None if the line is about no event."""
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
    """Whether this line schedules an event that the same commit starts: nobody sees it wait."""
    if not isinstance(entry.transition, Scheduled):
        return False
    lines = await _lines(store, None, entry.transition.event_id)
    return any(each.revision == entry.revision and isinstance(each.transition, Started)
               for each in lines)  # fmt: skip


async def _as_stored(store: Store, event_id: EventId) -> Event | None:
    """The event as it is now: the lines before cannot all be read, so nothing follows from them."""
    try:
        return (await store.find_event(event_id))[1]
    except Refused:
        return None


async def _lines(store: Store, before: Position | None, event_id: EventId) -> list[Entry]:
    """The newest first. All of them: an event's story is short, because its attempts are few."""
    found: list[Entry] = []
    while page := await store.history(before=before, event_id=event_id, limit=PAGE_ENTRIES_MAX):
        before = page[-1].position
        found += page
    return found
