"""This module estimates when each instance is affected, for a new rollout or for the rest of a
running one.

It assumes that nobody approves early, that nothing fails, and that each impact takes its duration,
or `ASSUMED_DURATION_S` if the duration is unknown. If this is so, the runner does exactly what the
plan says; a test compares them.
"""

import heapq
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.instants import DAY_MS, SECOND_MS, Instant, later
from fairwarning.core.model import Event, EventType, InstanceName, Phase, Scope, ScopeId
from fairwarning.core.rollouts import step_length
from fairwarning.core.rollouts.checks import advice, refuse_misfit, refuse_spec, refuse_steps
from fairwarning.core.rollouts.concurrency import Steps, by_scope, free_from, turns
from fairwarning.core.rollouts.model import (
    ACTIVE,
    UNFINISHED,
    Rollout,
    RolloutPhase,
    RolloutSpec,
    RolloutStep,
    StepPhase,
)
from fairwarning.core.rollouts.windows import HORIZON_DAYS, next_opening

Scopes = Mapping[ScopeId, Scope]
FORECAST_DAYS_MAX = 2 * HORIZON_DAYS
"""Steps that begin later than this get no estimate: it would be unreliable and slow to compute."""


def ends_ms(steps: Steps) -> Instant | None:
    """Return when the rollout ends. It is None if a step has no estimate."""
    ended = [step.ended_ms for step in steps if step.phase is not StepPhase.SKIPPED]
    known = [each for each in ended if each is not None]
    return max(known) if known and len(known) == len(ended) else None


class Plan(Struct, frozen=True, kw_only=True):
    steps: tuple[RolloutStep, ...]
    """The steps. All are waiting, and their times are estimates."""
    ends_ms: Instant | None
    warnings: tuple[str, ...] = ()
    total: int = 0
    """How many steps there are, of which only the first may be in `steps`."""
    instances: int = 0
    """How many instances all steps have."""


def short_preview(spec: RolloutSpec, scopes: Iterable[Scope], now: Instant, most: int) -> Plan:
    """Return the plan with its first steps only. Otherwise it is like `preview`."""
    found = preview(spec, scopes, now)
    return replace(found, steps=found.steps[:most])


def preview(spec: RolloutSpec, scopes: Iterable[Scope], now: Instant) -> Plan:
    """Return the plan of the rollout that `create` would start. Raises Refused as `create` does."""
    chosen = tuple(scopes)
    steps = checked_steps(spec, chosen, now)
    planned = _forecast(spec, steps, {scope.id: scope for scope in chosen}, now)
    return Plan(
        steps=planned,
        ends_ms=ends_ms(planned),
        warnings=advice(spec, chosen),
        total=len(planned),
        instances=sum(len(step.instances) for step in planned),
    )


def checked_steps(spec: RolloutSpec, scopes: tuple[Scope, ...], now: Instant) -> Steps:
    """Return the steps of a new rollout. Raises Refused if the rollout breaks a rule."""
    refuse_spec(spec)
    steps = draw_up(scopes)
    refuse_steps(steps)
    refuse_misfit(spec, (scope for scope in scopes if scope.roster.live), now)
    return steps


def estimate(rollout: Rollout, scopes: Scopes, now: Instant) -> Rollout:
    """Return the rollout, with estimates in its unfinished steps if it is running."""
    if rollout.phase is not RolloutPhase.RUNNING:
        return rollout
    due = turns(rollout, now)
    groups = by_scope(rollout.steps)
    places = list(due.resting_until)
    done: dict[ScopeId, Steps] = {}
    for scope_id in due.under_way:
        done[scope_id] = _run_through(rollout.spec, groups[scope_id], scopes, now)
        places.append(free_from(rollout.spec, done[scope_id]) or now)
    places += [now] * (rollout.spec.scopes_at_once - len(places))
    left = tuple(step for id, steps in groups.items() if id not in done for step in steps)
    forecast = _forecast(rollout.spec, left, scopes, now, places)
    done.update(by_scope(forecast))
    return replace(rollout, steps=tuple(step for id in groups for step in done[id]))


def _forecast(
    spec: RolloutSpec,
    steps: Steps,
    scopes: Scopes,
    now: Instant,
    places: list[Instant] | None = None,
) -> Steps:
    """Return the steps with estimates. Each scope takes the place that becomes free first; `places`
    has the times at which the places become free.
    """
    free = places or [now] * spec.scopes_at_once
    heapq.heapify(free)
    planned: list[RolloutStep] = []
    for group in by_scope(steps).values():
        if not any(step.phase in UNFINISHED for step in group):
            planned.extend(group)
            continue
        begin = max(free[0], now)
        if begin - now > FORECAST_DAYS_MAX * DAY_MS:
            planned.extend(group)
            continue
        timed = _run_through(spec, group, scopes, begin)
        planned.extend(timed)
        heapq.heapreplace(free, free_from(spec, timed) or begin)
    return tuple(planned)


def _run_through(spec: RolloutSpec, steps: Steps, scopes: Scopes, begin: Instant) -> Steps:
    """Return the steps of one scope with estimates, one after the other from `begin` on."""
    timed: list[RolloutStep] = []
    scope = scopes.get(steps[0].scope_id)
    for step in steps:
        at = max(begin, free_from(spec, tuple(timed)) or begin)
        timed.append(_timed(spec, step, scope, at) if step.phase in UNFINISHED else step)
    return tuple(timed)


def _timed(spec: RolloutSpec, step: RolloutStep, scope: Scope | None, at: Instant) -> RolloutStep:
    if step.phase in ACTIVE:
        assert step.not_before_ms is not None
        return replace(step, ended_ms=max(at, _end(spec, step.not_before_ms)))
    if scope is None or not step_length.targets(scope.roster, step):
        return step
    at = max(at, _pending_until(spec.type, step, scope, at))
    announced = next_opening(spec.calendar, at, step_length.needed_ms(spec, scope.roster))
    if announced is None:
        return step
    start = step_length.not_before(spec, scope.roster, announced)
    return replace(step, announced_ms=announced, not_before_ms=start, ended_ms=_end(spec, start))


def _end(spec: RolloutSpec, start: Instant) -> Instant:
    return _end_of(spec.type, step_length.known_duration_s(spec), start)


def _end_of(event_type: EventType, duration_s: int, start: Instant) -> Instant:
    taken_s = duration_s if duration_s >= 0 else step_length.ASSUMED_DURATION_S[event_type]
    return later(start, taken_s * SECOND_MS)


def _pending_until(event_type: EventType, step: RolloutStep, scope: Scope, at: Instant) -> Instant:
    """Return when other events of this type on these instances are expected to be over."""
    others = (
        _pending_end(event)
        for event in scope.unfinished
        if event.type is event_type and not set(event.resources).isdisjoint(step.instances)
    )
    return max(others, default=at)


def _pending_end(event: Event) -> Instant:
    is_started = event.phase is Phase.STARTED and event.started_ms is not None
    start = event.started_ms if is_started and event.started_ms else event.not_before_ms
    return _end_of(event.type, event.duration_s, start)


def draw_up(scopes: Iterable[Scope]) -> tuple[RolloutStep, ...]:
    """Return the steps of a new rollout in the order of the scopes that have live instances."""
    return tuple(step for scope in scopes for step in steps_of(scope))


def steps_of(scope: Scope) -> list[RolloutStep]:
    """Return the steps of one scope of a new rollout."""
    domains: dict[int, list[InstanceName]] = {}
    for instance in scope.roster.live:
        domains.setdefault(instance.update_domain, []).append(instance.name)
    return [
        RolloutStep(scope_id=scope.id, update_domain=domain, instances=tuple(names))
        for domain, names in sorted(domains.items())
    ]
