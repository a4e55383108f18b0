"""How events end, and what their end does to the instances (promise 9)."""

from fairwarning.core.draft import Draft
from fairwarning.core.instants import Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import Event, EventType, EvictionPolicy, Instance, Phase, Power
from fairwarning.core.transitions import (
    Cancelled,
    Completed,
    Forgotten,
    InstanceDeleted,
    PowerChanged,
)


def complete(draft: Draft, event: Event, now: Instant) -> None:
    draft.add(Completed(event_id=event.id, at_ms=now))
    for name in event.resources:
        if draft.scope.roster.has_live(name):
            _take_away(draft, event, draft.scope.roster.instances[name], now)


def _take_away(draft: Draft, event: Event, instance: Instance, now: Instant) -> None:
    is_evicted = event.type is EventType.PREEMPT
    is_deleted = event.type is EventType.TERMINATE or (
        is_evicted and instance.eviction is EvictionPolicy.DELETE
    )
    if is_deleted:
        draft.add(InstanceDeleted(name=instance.name, at_ms=now))
    elif is_evicted and instance.power is not Power.DEALLOCATED:
        draft.add(PowerChanged(name=instance.name, power=Power.DEALLOCATED))


def drop_events_of_deleted(draft: Draft, now: Instant) -> None:
    """Once no target is left, there is nobody to warn."""
    roster = draft.scope.roster
    for event in draft.scope.in_phase(Phase.SCHEDULED):
        if not any(roster.has_live(name) for name in event.resources):
            reason = "every instance of the event was deleted"
            draft.add(Cancelled(event_id=event.id, reason=reason, at_ms=now))


def forget_old(draft: Draft, now: Instant, timing: Timing) -> None:
    """The journal keeps them; the scope need not carry them for ever."""
    horizon = now - timing.retention_ms
    events = tuple(
        each.id
        for each in draft.scope.events.values()
        if each.ended_ms is not None and each.ended_ms <= horizon
    )
    names = tuple(
        each.name
        for each in draft.scope.roster.instances.values()
        if each.deleted_ms is not None and each.deleted_ms <= horizon
    )
    if events or names:
        draft.add(Forgotten(event_ids=events, names=names))
