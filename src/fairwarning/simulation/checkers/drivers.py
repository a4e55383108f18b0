"""Checks the calls of drivers, and what the drivers really did: promise 4."""

from collections import Counter

from fairwarning.core.model import EventId
from fairwarning.simulation.driver import DriverCall, Impact
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World


class DriverChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read = 0
        self._calls: Counter[tuple[EventId, int, str, int]] = Counter()

    def check(self, seen: ObservedWorld) -> None:
        physical = self._world.physical
        blind = physical.blind_repeats
        demand("4 once", not blind, lambda: f"repeated without asking: {blind}")
        for call in physical.calls[self._read :]:
            self._check_call(call)
        self._read = len(physical.calls)
        for impact in physical.impacts.values():
            self._check_impact(seen, impact)
        self._check_stopped()

    async def check_work(self) -> None:
        """Checks that a stopped node has no work left, unless the answer to a call was lost."""
        world = self._world
        if world.past:
            return
        gone = [each for each in (*world.nodes, *world.gone) if each.calls_when_stopped is not None]
        names = {each.name for each in gone if each.is_dead and not each.has_lost_answers}
        if not names:
            return
        for scope_id in world.scope_ids:
            for event in (await world.store.read(scope_id)).unfinished:
                kept = event.work is not None and event.work.node in names
                demand("4 stopped nodes rest", not kept, lambda: f"{event.work} was not given back")  # noqa: B023

    def _check_call(self, call: DriverCall) -> None:
        key = (call.key, call.attempt, call.holder, call.past)
        self._calls[key] += 1
        demand("4 once", self._calls[key] == 1, lambda: f"the same attempt again: {call}")
        # If a clock or the store jumps, the node may call too late, and the driver refuses.
        is_fair = not self._world.was_stepped_ahead and self._world.past == 0
        is_held = not call.trouble or not is_fair
        demand("4 only under a lease", is_held, lambda: f"{call}")

    def _check_impact(self, seen: ObservedWorld, impact: Impact) -> None:
        demand("4 once", impact.runs <= 1, lambda: f"{impact.key} ran {impact.runs} times")
        if self._world.past:
            # A node may have got the work before the store was set back, which has lost that.
            return
        event = seen.scopes[impact.scope_id].events.get(impact.key)
        demand("4 once", event is not None, lambda: f"{impact.key} is no event")
        began = event is not None and event.started_ms is not None
        demand("1 never early", began, lambda: f"{impact.key} hit before it started")

    def _check_stopped(self) -> None:
        """Checks that a node calls no driver after it has stopped."""
        world = self._world
        for node in (*world.nodes, *world.gone):
            if node.calls_when_stopped is None:
                continue
            late = [
                each for each in world.physical.calls[node.calls_when_stopped :]
                if each.node == node.name
            ]  # fmt: skip
            demand("4 stopped nodes rest", not late, lambda: f"{node.name} has stopped: {late}")  # noqa: B023
