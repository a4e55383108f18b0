"""What a target is told of a line of the journal, in the form that it asked for."""

from fairwarning.core.instants import Instant
from fairwarning.core.model import Event
from fairwarning.engine.protocols import Entry, Store
from fairwarning.notices.event_grid import grid_message, grid_trial
from fairwarning.notices.messages import message_of, trial_message
from fairwarning.notices.model import Format, Message, Target
from fairwarning.notices.story import starts_at_once


async def is_tellable(store: Store, target: Target, entry: Entry, event: Event | None) -> bool:
    """Event Grid tells of what instances can see, so of nothing that happens unseen."""
    if target.format is not Format.EVENT_GRID:
        return True
    return event is not None and event.announced and not await starts_at_once(store, entry)


async def message_to(store: Store, target: Target, entry: Entry, event: Event | None) -> Message:
    if target.format is not Format.EVENT_GRID:
        return message_of(entry, event, target.template)
    assert event is not None, "a target of this format hears of events only"
    scope = await store.read(entry.scope_id)
    return grid_message(entry, event, scope.roster.location, target.template)


def trial_to(target: Target, id: str, now: Instant) -> Message:
    make = grid_trial if target.format is Format.EVENT_GRID else trial_message
    return make(id, target.name, now)
