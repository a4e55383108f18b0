"""Checks that rollouts keep their windows and their order, and come to an end."""

from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant
from fairwarning.core.model import EventId, ScopeId
from fairwarning.core.rollouts.model import Rollout, RolloutSpec
from fairwarning.core.transitions import Scheduled
from fairwarning.engine.protocols import Entry
from fairwarning.engine.rollout_records import RolloutRecords
from fairwarning.simulation.observed_state import ObservedEvent, ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

_PROMISE = "rollouts"


class RolloutChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read = 0

    def forget(self) -> None:
        """Forgets what it has read, because the journal was set back."""
        self._read = 0

    async def check(self, seen: ObservedWorld) -> None:
        new, self._read = seen.entries[self._read :], len(seen.entries)
        scheduled = [entry for entry in new if _is_announcement(entry)]
        if not scheduled:
            return
        records = RolloutRecords(self._world.store)
        for entry in scheduled:
            rollout = (await records.find(entry.by.name)).rollout
            assert isinstance(entry.transition, Scheduled)
            self._check_time(rollout, entry.transition.event.not_before_ms)
            self._check_order(rollout, seen)

    async def check_at_end(self) -> None:
        for kept in await RolloutRecords(self._world.store).unfinished(self._world.now()):
            demand(_PROMISE, False, lambda: f"{kept.rollout} does not end")  # noqa: B023

    def _check_time(self, rollout: Rollout, not_before: Instant) -> None:
        fits = _is_open(rollout.spec, not_before)
        demand(_PROMISE, fits, lambda: f"{rollout.id} is closed at {not_before}")

    def _check_order(self, rollout: Rollout, seen: ObservedWorld) -> None:
        under_way = [
            (scope.id, each)
            for scope in seen.scopes.values()
            for each in scope.events.values()
            if each.ended_ms is None and each.event.id in _event_ids(rollout)
        ]
        scopes = {scope_id for scope_id, _ in under_way}
        few = len(scopes) <= rollout.spec.scopes_at_once
        demand(_PROMISE, few, lambda: f"{rollout.id} is in {scopes} at once")
        one_each = len(under_way) == len(scopes)
        demand(_PROMISE, one_each, lambda: f"{rollout.id} hurries: {_names(under_way)}")


def _is_announcement(entry: Entry) -> bool:
    return entry.by.kind == "rollout" and isinstance(entry.transition, Scheduled)


def _event_ids(rollout: Rollout) -> set[EventId]:
    return {step.event_id for step in rollout.steps if step.event_id is not None}


def _names(under_way: list[tuple[ScopeId, ObservedEvent]]) -> list[str]:
    return [each.event.id for _, each in under_way]


def _is_open(spec: RolloutSpec, instant: Instant) -> bool:
    """Returns whether a window is open. All windows of the simulation are daily and in UTC."""
    minute = instant % DAY_MS // MINUTE_MS
    return not spec.windows or any(
        each.from_minute <= minute < each.to_minute for each in spec.windows
    )
