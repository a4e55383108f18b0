"""This module updates the steps of a rollout from their events. If they differ, events count."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.model import Event, EventId, Phase, Scope, ScopeId
from fairwarning.core.rollouts.model import (
    ACTIVE,
    UNFINISHED,
    Rollout,
    RolloutStep,
    StepPhase,
    event_id_of,
)

WINDOW_CLOSED = "the maintenance window closed before it could start; a later one follows"
"""The reason for withdrawing an announcement that will be made again in another window."""

_PHASE_OF = {
    Phase.SCHEDULED: StepPhase.ANNOUNCED,
    Phase.STARTED: StepPhase.STARTED,
    Phase.COMPLETED: StepPhase.COMPLETED,
    Phase.FAILED: StepPhase.FAILED,
    Phase.CANCELLED: StepPhase.CANCELLED,
}


class FleetState(Struct, frozen=True, kw_only=True):
    """The scopes and past events from which the next step of a rollout is decided."""

    scopes: Mapping[ScopeId, Scope | None]
    """The scopes that were read, by id. The value is None if the scope no longer exists."""
    past: Mapping[EventId, Event] = {}
    """The events that are no longer in their scope."""

    def event(self, scope_id: ScopeId, event_id: EventId) -> Event | None:
        """Return the event, or the last event that replaced it, or None."""
        scope = self.scopes.get(scope_id)
        event = (scope.events.get(event_id) if scope else None) or self.past.get(event_id)
        if event is not None and event.replaced_by is not None:
            return self.event(scope_id, event.replaced_by) or event
        return event

    def of_step(self, step: RolloutStep) -> Event | None:
        return None if step.event_id is None else self.event(step.scope_id, step.event_id)


def follow(rollout: Rollout, fleet: FleetState) -> Rollout:
    steps = tuple(_follow(rollout, step, fleet) for step in rollout.steps)
    return rollout if steps == rollout.steps else replace(rollout, steps=steps)


def _follow(rollout: Rollout, step: RolloutStep, fleet: FleetState) -> RolloutStep:
    if step.phase not in UNFINISHED or step.scope_id not in fleet.scopes:
        return step
    # A waiting step may have an event too, from a node that was slow to announce it.
    event = fleet.event(step.scope_id, step.event_id or event_id_of(rollout.id, step))
    scope = fleet.scopes[step.scope_id]
    if event is None or (scope is None and not event.is_finished):
        return replace(step, phase=StepPhase.SKIPPED) if scope is None else step
    if event.phase is Phase.CANCELLED:
        return _cancelled(step, event, scope)
    return replace(_with_times(step, event), phase=_PHASE_OF[event.phase])


def _cancelled(step: RolloutStep, event: Event, scope: Scope | None) -> RolloutStep:
    if event.outcome == WINDOW_CLOSED:
        return replace(to_waiting(step), tries=step.tries + 1)
    if scope is None or not any(scope.roster.has_live(name) for name in event.resources):
        return replace(step, phase=StepPhase.SKIPPED)
    return replace(_with_times(step, event), phase=StepPhase.CANCELLED)


def _with_times(step: RolloutStep, event: Event) -> RolloutStep:
    return replace(
        step,
        event_id=event.id,
        announced_ms=event.created_ms,
        not_before_ms=event.not_before_ms,
        ended_ms=event.ended_ms,
    )


def to_waiting(step: RolloutStep) -> RolloutStep:
    return replace(
        step, phase=StepPhase.WAITING, event_id=None, announced_ms=None, not_before_ms=None
    )


def trouble(rollout: Rollout, fleet: FleetState) -> str:
    """Return a sentence about the first step that failed or was cancelled, or an empty text."""
    for step in rollout.steps:
        if step.phase in (StepPhase.FAILED, StepPhase.CANCELLED):
            event = fleet.of_step(step)
            reason = event.outcome if event else "its notice fits into no window any more"
            where = f"update domain {step.update_domain} of {step.scope_id}"
            return f"{rollout.spec.type} of {where} {_WORDS[step.phase]}: {reason}"
    return ""


_WORDS = {StepPhase.FAILED: "failed", StepPhase.CANCELLED: "was cancelled"}


def is_in_flight(step: RolloutStep, fleet: FleetState) -> bool:
    """Return whether the step is stored as announced but has no event, perhaps after a crash."""
    is_looked_at = step.phase in ACTIVE and step.scope_id in fleet.scopes
    return is_looked_at and fleet.of_step(step) is None
