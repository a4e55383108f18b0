"""This module decides what a rollout does next, from the state of its events at one instant.

Theory of operation. A step is stored as announced before its event is announced, so that a pause or
a cancel on any node is decided against the same record. A crash in between leaves a step without an
event; the event is then announced again under the same id. An event is announced only if its whole
notice and its impact fit into open time (`windows.py`). If the event cannot start in time, the
announcement is withdrawn.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.instants import Instant, later
from fairwarning.core.model import Event, EventId, Phase, Scope, ScopeId
from fairwarning.core.rollouts import step_length
from fairwarning.core.rollouts.concurrency import Steps, by_scope, free_from, turns
from fairwarning.core.rollouts.model import (
    ACTIVE,
    STOPPED,
    UNFINISHED,
    Rollout,
    RolloutPhase,
    RolloutStep,
    StepPhase,
    event_id_of,
)
from fairwarning.core.rollouts.windows import closes, next_opening

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


_WORDS = {StepPhase.FAILED: "failed", StepPhase.CANCELLED: "was cancelled"}


class Announce(Struct, frozen=True, kw_only=True):
    scope_id: ScopeId
    command: Schedule


class Withdraw(Struct, frozen=True, kw_only=True):
    scope_id: ScopeId
    command: Cancel


class Advance(Struct, frozen=True, kw_only=True):
    """What to do next: store `rollout`, then announce and withdraw, then call `advance` again."""

    rollout: Rollout
    announce: tuple[Announce, ...] = ()
    withdraw: tuple[Withdraw, ...] = ()
    wake_ms: Instant | None = None
    """When to call `advance` again even if no scope has changed, or None."""


def advance(
    rollout: Rollout,
    scopes: Mapping[ScopeId, Scope | None],
    now: Instant,
    *,
    past: Mapping[EventId, Event] | None = None,
) -> Advance:
    """Return what the rollout does next. `past` has events that have left their scope. `scopes`
    must have what `concurrency.concerns` names, with None for a scope that is gone.
    """
    if rollout.ended_ms is not None:
        return Advance(rollout=rollout)
    fleet = FleetState(scopes=scopes, past=past or {})
    rollout = _with_outcomes(rollout, fleet)
    may_fail = not rollout.is_finished and rollout.spec.stop_on_failure
    if may_fail and (why := _trouble(rollout, fleet)):
        rollout = replace(rollout, phase=RolloutPhase.FAILED, outcome=why)
    draft = _Draft(rollout, fleet, now)
    if rollout.phase in STOPPED:
        draft.wind_down()
    elif rollout.phase is RolloutPhase.PAUSED:
        draft.hold()
    else:
        draft.go_on()
    return draft.result()


class _Draft:
    """What one call of `advance` has decided so far."""

    def __init__(self, rollout: Rollout, fleet: FleetState, now: Instant) -> None:
        self._rollout = rollout
        self._fleet = fleet
        self._now = now
        self._steps = {(step.scope_id, step.update_domain): step for step in rollout.steps}
        self._announce: list[Announce] = []
        self._withdraw: list[Withdraw] = []
        self._wake: list[Instant] = []

    def go_on(self) -> None:
        self._withdraw_late()
        groups = by_scope(self._rollout.steps)
        due = turns(self._rollout, self._now)
        self._wake.extend(due.resting_until)
        for scope_id in due.under_way + due.begin:
            if scope_id in self._fleet.scopes:
                self._next_of(groups[scope_id], self._fleet.scopes[scope_id])

    def hold(self) -> None:
        """Announce nothing. A step without an event waits again once its NotBefore has passed."""
        self._withdraw_late()
        for step in self._in_flight():
            self._put(_to_waiting(step))

    def wind_down(self) -> None:
        for step in self._rollout.steps:
            event = self._fleet.of_step(step)
            if step.phase is StepPhase.WAITING:
                self._put(replace(step, phase=StepPhase.SKIPPED))
            elif step.phase is StepPhase.ANNOUNCED and event is not None:
                self._take_back(step.scope_id, event, f"rollout {self._rollout.id} has ended")
        for step in self._in_flight():
            self._put(replace(step, phase=StepPhase.SKIPPED))

    def result(self) -> Advance:
        rollout = replace(self._rollout, steps=tuple(self._steps.values()))
        if _is_over(rollout):
            rollout = replace(rollout, ended_ms=self._now)
            if not rollout.is_finished:
                outcome = _summary(rollout)
                rollout = replace(rollout, phase=RolloutPhase.COMPLETED, outcome=outcome)
        return Advance(
            rollout=rollout,
            announce=tuple(self._announce),
            withdraw=tuple(self._withdraw),
            wake_ms=min(self._wake, default=None) if rollout.ended_ms is None else None,
        )

    def _next_of(self, steps: Steps, scope: Scope | None) -> None:
        for step in steps:
            if step.phase not in UNFINISHED:
                continue
            if step.phase is not StepPhase.WAITING and not _is_in_flight(step, self._fleet):
                return
            if scope is not None and step_length.targets(scope.roster, step):
                self._announce_or_wait(step, steps, scope)
                return
            self._put(replace(step, phase=StepPhase.SKIPPED))

    def _announce_or_wait(self, step: RolloutStep, steps: Steps, scope: Scope) -> None:
        spec, roster = self._rollout.spec, scope.roster
        names = tuple(each.name for each in step_length.targets(roster, step))
        self._put(_to_waiting(step))
        if any(e.type is spec.type and set(names) & set(e.resources) for e in scope.unfinished):
            return
        earliest = max(self._now, free_from(spec, steps) or self._now)
        opening = next_opening(spec.calendar, earliest, step_length.needed_ms(spec, roster))
        if opening is None:
            self._give_up(step)
        elif opening > self._now:
            self._wake.append(opening)
        else:
            event_id = event_id_of(self._rollout.id, step)
            start = step_length.not_before(spec, roster, self._now)
            command = Schedule(
                event_id=event_id,
                type=spec.type,
                targets=names,
                not_before_ms=start,
                description=spec.description,
                duration_s=step_length.known_duration_s(spec),
            )
            self._announce.append(Announce(scope_id=scope.id, command=command))
            self._put(
                replace(
                    step,
                    phase=StepPhase.ANNOUNCED,
                    instances=names,
                    event_id=event_id,
                    announced_ms=self._now,
                    not_before_ms=start,
                )
            )

    def _give_up(self, step: RolloutStep) -> None:
        """Fail the step, because no window is long enough for it any more."""
        self._put(replace(_to_waiting(step), phase=StepPhase.FAILED, ended_ms=self._now))
        self._wake.append(self._now)

    def _withdraw_late(self) -> None:
        for step in self._rollout.steps:
            event = self._fleet.of_step(step)
            if step.phase is not StepPhase.ANNOUNCED or event is None:
                continue
            latest = self._latest_start(step, event)
            if latest is not None and self._now > latest:
                self._take_back(step.scope_id, event, WINDOW_CLOSED)
            elif latest is not None:
                self._wake.append(later(latest, 1))

    def _latest_start(self, step: RolloutStep, event: Event) -> Instant | None:
        """Return the latest instant at which the event may start, or None if there is no limit. If
        an operator has postponed the event, the windows no longer limit it.
        """
        if event.id != event_id_of(self._rollout.id, step):
            return None
        spec = self._rollout.spec
        end = closes(spec.calendar, event.not_before_ms)
        return None if end is None else step_length.latest_start(spec, end)

    def _in_flight(self) -> list[RolloutStep]:
        """Return the steps that have no event and whose NotBefore has passed."""
        over: list[RolloutStep] = []
        for step in self._rollout.steps:
            if _is_in_flight(step, self._fleet):
                assert step.not_before_ms is not None
                if self._now > step.not_before_ms:
                    over.append(step)
                else:
                    self._wake.append(later(step.not_before_ms, 1))
        return over

    def _take_back(self, scope_id: ScopeId, event: Event, reason: str) -> None:
        if event.phase is Phase.SCHEDULED:
            command = Cancel(event_id=event.id, reason=reason)
            self._withdraw.append(Withdraw(scope_id=scope_id, command=command))

    def _put(self, step: RolloutStep) -> None:
        self._steps[step.scope_id, step.update_domain] = step


def _is_over(rollout: Rollout) -> bool:
    if any(step.phase in UNFINISHED for step in rollout.steps):
        return False
    # What a stopped rollout never came to needs no step.
    has_more = rollout.rest is not None and rollout.rest.next < rollout.rest.parts
    return not has_more or rollout.phase in STOPPED


def _summary(rollout: Rollout) -> str:
    closed = {} if rollout.rest is None else rollout.rest.closed
    counts = {phase: closed.get(phase, 0) for phase in StepPhase}
    for step in rollout.steps:
        counts[step.phase] += 1
    told = [f"{count} {phase}" for phase, count in counts.items() if count]
    return f"update domains: {', '.join(told)}"


def _with_outcomes(rollout: Rollout, fleet: FleetState) -> Rollout:
    """Update the steps from their events. Where the two differ, the event counts."""
    steps = tuple(_step_outcome(rollout, step, fleet) for step in rollout.steps)
    return rollout if steps == rollout.steps else replace(rollout, steps=steps)


def _step_outcome(rollout: Rollout, step: RolloutStep, fleet: FleetState) -> RolloutStep:
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
        return replace(_to_waiting(step), tries=step.tries + 1)
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


def _to_waiting(step: RolloutStep) -> RolloutStep:
    return replace(
        step, phase=StepPhase.WAITING, event_id=None, announced_ms=None, not_before_ms=None
    )


def _trouble(rollout: Rollout, fleet: FleetState) -> str:
    """Return a sentence about the first step that failed or was cancelled, or an empty text."""
    for step in rollout.steps:
        if step.phase in (StepPhase.FAILED, StepPhase.CANCELLED):
            event = fleet.of_step(step)
            reason = event.outcome if event else "its notice fits into no window any more"
            where = f"update domain {step.update_domain} of {step.scope_id}"
            return f"{rollout.spec.type} of {where} {_WORDS[step.phase]}: {reason}"
    return ""


def _is_in_flight(step: RolloutStep, fleet: FleetState) -> bool:
    """Return whether the step is stored as announced but has no event, perhaps after a crash."""
    is_looked_at = step.phase in ACTIVE and step.scope_id in fleet.scopes
    return is_looked_at and fleet.of_step(step) is None
