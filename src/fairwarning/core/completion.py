"""This module completes events and then changes their instances accordingly (promise 9)."""

from collections.abc import Mapping
from typing import TypeVar

from fairwarning.core import transitions
from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import Draft
from fairwarning.core.limits import DELETED_KEPT_MAX, FINISHED_KEPT_MAX, Timing
from fairwarning.core.model import (
    Event,
    EventType,
    EvictionPolicy,
    Instance,
    OperationKind,
    Phase,
    Power,
)
from fairwarning.core.roster import upgraded

T = TypeVar("T")

_POWER_AFTER: Mapping[OperationKind | None, Power] = {
    OperationKind.START: Power.RUNNING,
    OperationKind.STOP: Power.STOPPED,
    OperationKind.DEALLOCATE: Power.DEALLOCATED,
}


def complete(draft: Draft, event: Event, now: Instant) -> None:
    draft.add(transitions.Completed(event_id=event.id, at_ms=now))
    for name in event.resources:
        if draft.scope.roster.has_live(name):
            _change_instance(draft, event, draft.scope.roster.instances[name], now)


def _change_instance(draft: Draft, event: Event, instance: Instance, now: Instant) -> None:
    is_evicted = event.type is EventType.PREEMPT
    is_deleted = event.type is EventType.TERMINATE or (
        is_evicted and instance.eviction is EvictionPolicy.DELETE
    )
    if is_deleted:
        draft.add(transitions.InstanceDeleted(name=instance.name, at_ms=now))
        return
    power = Power.DEALLOCATED if is_evicted else _POWER_AFTER.get(event.operation)
    if power is not None and instance.power is not power:
        draft.add(transitions.PowerChanged(name=instance.name, power=power))
    is_reimaged = event.operation is OperationKind.REIMAGE
    if is_reimaged and not draft.scope.roster.latest_model_applied(instance):
        draft.add(upgraded(draft.scope.roster, (instance.name,)))


def drop_events_of_deleted(draft: Draft, now: Instant) -> None:
    """Cancel the scheduled events all of whose instances have been deleted."""
    roster = draft.scope.roster
    for event in draft.scope.in_phase(Phase.SCHEDULED):
        if not any(roster.has_live(name) for name in event.resources):
            reason = "every instance of the event was deleted"
            draft.add(transitions.Cancelled(event_id=event.id, reason=reason, at_ms=now))


def forget_old(draft: Draft, now: Instant, timing: Timing) -> None:
    """Remove finished events and deleted instances from the scope if they are old or too many.

    A scope with all of its past would be slow to write. The store keeps the past, and never accepts
    a used event id again.
    """
    horizon = now - timing.retention_ms
    scope = draft.scope
    ended = [(e.ended_ms, e.id) for e in scope.events.values() if e.ended_ms is not None]
    gone = [
        (i.deleted_ms, i.name) for i in scope.roster.instances.values() if i.deleted_ms is not None
    ]
    events = _too_old(ended, horizon, FINISHED_KEPT_MAX)
    names = _too_old(gone, horizon, DELETED_KEPT_MAX)
    if events or names:
        draft.add(transitions.Forgotten(event_ids=events, names=names))


def _too_old(ended: list[tuple[Instant, T]], horizon: int, kept_max: int) -> tuple[T, ...]:
    if len(ended) <= kept_max and all(at > horizon for at, _ in ended):
        return ()
    ended.sort(key=lambda each: each[0])
    surplus = max(len(ended) - kept_max, 0)
    return tuple(
        name for number, (at, name) in enumerate(ended) if number < surplus or at <= horizon
    )
