"""This module finds the scopes of a rollout that are under way, and those that may begin.

Only `scopes_at_once` scopes have a place at the same time. A scope keeps its place from its first
announcement until the pause after its last update domain. Free places go to the scopes in the order
of the plan. A scope that waits for a window keeps its place.
"""

from itertools import groupby

from msgspec import Struct

from fairwarning.core.instants import Instant, later
from fairwarning.core.model import ScopeId
from fairwarning.core.rollouts.model import (
    ACTIVE,
    STOPPED,
    UNFINISHED,
    Rollout,
    RolloutPhase,
    RolloutSpec,
    RolloutStep,
    StepPhase,
)

Steps = tuple[RolloutStep, ...]


class Turns(Struct, frozen=True, kw_only=True):
    under_way: tuple[ScopeId, ...]
    begin: tuple[ScopeId, ...]
    """The scopes that may begin now. Nothing of them was announced yet."""
    resting_until: tuple[Instant, ...]
    """The times at which the places of finished scopes become free."""
    places_left: int = 0
    """How many more scopes could begin now, if the rollout had more."""


def by_scope(steps: Steps) -> dict[ScopeId, Steps]:
    return {id: tuple(group) for id, group in groupby(steps, key=lambda step: step.scope_id)}


def turns(rollout: Rollout, now: Instant) -> Turns:
    under_way: list[ScopeId] = []
    fresh: list[ScopeId] = []
    resting: list[Instant] = []
    for scope_id, steps in by_scope(rollout.steps).items():
        is_left = any(step.phase in UNFINISHED for step in steps)
        if not has_begun(steps):
            if is_left:
                fresh.append(scope_id)
        elif is_left:
            under_way.append(scope_id)
        elif (until := free_from(rollout.spec, steps)) is not None and until > now:
            resting.append(until)
    free = max(rollout.spec.scopes_at_once - len(under_way) - len(resting), 0)
    return Turns(
        under_way=tuple(under_way),
        begin=tuple(fresh[:free]),
        resting_until=tuple(resting),
        places_left=max(free - len(fresh), 0),
    )


def has_begun(steps: Steps) -> bool:
    return any(step.phase not in (StepPhase.WAITING, StepPhase.SKIPPED) for step in steps)


def free_from(spec: RolloutSpec, steps: Steps) -> Instant | None:
    """Return when the pause after the last finished step ends. It is None if no step has ended."""
    ended = [step.ended_ms for step in steps if step.ended_ms is not None]
    return later(max(ended), spec.pause_ms) if ended else None


def concerns(rollout: Rollout, now: Instant) -> tuple[ScopeId, ...]:
    """Return the ids of the scopes that `advance` needs to decide what the rollout does next."""
    if rollout.phase is RolloutPhase.PAUSED or rollout.phase in STOPPED:
        return tuple(dict.fromkeys(s.scope_id for s in rollout.steps if s.phase in ACTIVE))
    due = turns(rollout, now)
    return due.under_way + due.begin
