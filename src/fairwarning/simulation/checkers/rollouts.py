"""Checks that rollouts keep their windows and their order, and come to an end."""

from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant
from fairwarning.core.rollouts.model import Rollout, RolloutSpec
from fairwarning.core.transitions import Scheduled
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

_PROMISE = "rollouts"


class RolloutChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read = 0

    def forget(self) -> None:
        """Reads the journal from the beginning again, because the store was set back."""
        self._read = 0

    async def check(self, seen: ObservedWorld) -> None:
        new, self._read = seen.entries[self._read :], len(seen.entries)
        records = RolloutRecords(self._world.store)
        for entry in new:
            if entry.by.kind == "rollout" and isinstance(entry.transition, Scheduled):
                rollout = (await records.find(entry.by.name)).rollout
                not_before = entry.transition.event.not_before_ms
                fits = _is_open(rollout.spec, not_before)
                demand(_PROMISE, fits, lambda: f"{rollout.id} is closed at {not_before}")  # noqa: B023
                self._check_order(rollout, seen)

    async def check_at_end(self) -> None:
        for kept in await RolloutRecords(self._world.store).unfinished(self._world.now()):
            demand(_PROMISE, False, lambda: f"{kept.rollout} does not end")  # noqa: B023

    def _check_order(self, rollout: Rollout, seen: ObservedWorld) -> None:
        own = {step.event_id for step in rollout.steps}
        under_way = [
            (scope.id, each.event.id)
            for scope in seen.scopes.values()
            for each in scope.events.values()
            if each.ended_ms is None and each.event.id in own
        ]
        scopes = {scope_id for scope_id, _ in under_way}
        few = len(scopes) <= rollout.spec.scopes_at_once
        demand(_PROMISE, few, lambda: f"{rollout.id} is in {scopes} at once")
        one_each = len(under_way) == len(scopes)
        demand(_PROMISE, one_each, lambda: f"{rollout.id} hurries: {under_way}")


def _is_open(spec: RolloutSpec, instant: Instant) -> bool:
    """Returns whether a window is open. All windows of the simulation are daily and in UTC."""
    minute = instant % DAY_MS // MINUTE_MS
    return not spec.windows or any(
        each.from_minute <= minute < each.to_minute for each in spec.windows
    )
