"""Checks that receivers get every notification at least once, and nothing else."""

from fairwarning.engine.protocols import Entry
from fairwarning.notifications.model import Target
from fairwarning.notifications.records import DEAD
from fairwarning.simulation.notifications import Sent, targets
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

_PROMISE = "notifications"


class NotificationChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._targets = {each.id: each for each in targets(world.shape.targets)}
        self._read = 0

    def check(self, seen: ObservedWorld) -> None:
        arrived = self._world.arrived
        if len(arrived) == self._read:
            return
        entries = {entry.position: entry for entry in seen.entries}
        for sent in arrived[self._read :]:
            if sent.past == self._world.past:
                self._check_one(sent, entries.get(sent.position))
        self._read = len(arrived)

    async def check_at_end(self, seen: ObservedWorld) -> None:
        """Checks that every target got all its notifications, unless the store was set back."""
        if self._world.past or not self._targets:
            return
        dead = await self._world.store.records(DEAD, limit=1_000)
        got = {(sent.target_id, sent.position) for sent in self._world.arrived}
        first = self._world.entries_before_targets
        for target in self._targets.values():
            wanted = [entry for entry in seen.entries[first:] if _wants(target, entry)]
            missed = [entry for entry in wanted if (target.id, entry.position) not in got]
            few = len(missed) <= len(dead)
            demand(_PROMISE, few, lambda: f"{target.name} never heard of {missed}")  # noqa: B023

    def _check_one(self, sent: Sent, entry: Entry | None) -> None:
        demand(_PROMISE, entry is not None, lambda: f"{sent} tells of nothing that happened")
        assert entry is not None
        is_wanted = _wants(self._targets[sent.target_id], entry)
        demand(_PROMISE, is_wanted, lambda: f"{sent} was not asked for: {entry}")


def _wants(target: Target, entry: Entry) -> bool:
    return type(entry.transition).__name__ in target.filters.kinds
