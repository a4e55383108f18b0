"""This module divides a large rollout into parts, and decides which of them are open.

Theory of operation. The steps of a rollout over 100,000 scopes are too many to look at whenever one
of them changes. So they are stored in parts of some scopes each, and only the steps of the open
parts are in `Rollout.steps`. Parts are opened in order, as soon as there are places for more scopes
than the open parts have. A part is closed when all its scopes are done and have had their pause.
All that `advance` decides depends on open parts only, so it decides the same as if it saw all
parts.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.rollouts.concurrency import Steps, by_scope, free_from, turns
from fairwarning.core.rollouts.model import (
    UNFINISHED,
    Rollout,
    RolloutPhase,
    RolloutStep,
    StepPhase,
)

WHOLE_STEPS_MAX = 1_000  # A rollout of so many steps is one record, which is quick to handle.
WHOLE_INSTANCES_MAX = 5_000
"""A rollout with more instances is divided too. Each change writes a record with all its names."""
PART_STEPS_MAX = 100  # Few enough to be decoded and written quickly.
PART_INSTANCES_MAX = 500
"""A part ends after this many instances, so that it is quick to decode."""


class Divider:
    """Divides the steps of a new rollout into parts. The steps of a scope stay together."""

    def __init__(self) -> None:
        self.scopes = 0
        self.steps = 0
        self._part: list[RolloutStep] = []
        self._instances = 0

    def add(self, steps: Sequence[RolloutStep]) -> Steps:
        """Add the steps of a scope. Returns the steps of a part if one is full now, else none."""
        self.scopes += bool(steps)
        self.steps += len(steps)
        self._part += steps
        self._instances += sum(len(step.instances) for step in steps)
        is_full = len(self._part) >= PART_STEPS_MAX or self._instances >= PART_INSTANCES_MAX
        return self.end() if is_full else ()

    def end(self) -> Steps:
        """Return the steps of the last part. There may be none."""
        found, self._part, self._instances = tuple(self._part), [], 0
        return found


def wants_part(rollout: Rollout, now: Instant) -> bool:
    """Return whether another part is to be opened, because there are places for more scopes."""
    rest = rollout.rest
    if rest is None or rest.next >= rest.parts or rollout.phase is not RolloutPhase.RUNNING:
        return False
    return turns(rollout, now).places_left > 0


def with_part(rollout: Rollout, steps: Steps) -> Rollout:
    """Return the rollout with its next part opened, which has these steps."""
    rest = rollout.rest
    assert rest is not None
    rest = replace(
        rest,
        opened=(*rest.opened, rest.next),
        next=rest.next + 1,
        waiting=rest.waiting - len(steps),
    )
    return replace(rollout, steps=rollout.steps + steps, rest=rest)


def without_finished(rollout: Rollout, parts: Sequence[tuple[int, Steps]], now: Instant) -> Rollout:
    """Close the parts whose steps are all over, and return the rollout without them. `parts` has
    the number and the steps of each open part.
    """
    rest = rollout.rest
    if rest is None or rollout.is_finished:
        return rollout
    over = {number: steps for number, steps in parts if _is_over(rollout, steps, now)}
    if not over:
        return rollout
    closed = Counter(rest.closed)
    for steps in over.values():
        closed.update(step.phase for step in steps)
    left = [(number, steps) for number, steps in parts if number not in over]
    return replace(
        rollout,
        steps=tuple(step for _, steps in left for step in steps),
        rest=replace(rest, opened=tuple(number for number, _ in left), closed=dict(closed)),
    )


def _is_over(rollout: Rollout, steps: Steps, now: Instant) -> bool:
    if any(step.phase in UNFINISHED for step in steps):
        return False
    free = (free_from(rollout.spec, group) for group in by_scope(steps).values())
    return all(each is None or each <= now for each in free)


def in_parts(rollout: Rollout, sizes: Sequence[int]) -> list[Steps]:
    """Return the steps of each open part. `sizes` has the number of steps of each, which never
    changes.
    """
    found: list[Steps] = []
    at = 0
    for size in sizes:
        found.append(rollout.steps[at : at + size])
        at += size
    return found


def with_counts(rollout: Rollout) -> Rollout:
    """Return the rollout with its open steps counted by phase, for readers that don't load them."""
    if rollout.rest is None:
        return rollout
    count = dict(Counter(step.phase for step in rollout.steps))
    return replace(rollout, rest=replace(rollout.rest, open=count))


def shown_step(rollout: Rollout, step: RolloutStep) -> RolloutStep:
    """Return the step of a part as a reader must see it. In a part that was never opened, the
    steps of a rollout that has stopped are still stored as waiting.
    """
    if step.phase is StepPhase.WAITING and rollout.is_finished and rollout.ended_ms is not None:
        return replace(step, phase=StepPhase.SKIPPED)
    return step
