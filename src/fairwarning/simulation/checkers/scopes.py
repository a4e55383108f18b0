"""Compares each stored scope with what the journal says: promises 6, 9 and 10."""

import json

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import OperateAll
from fairwarning.core.document import render
from fairwarning.core.model import Scope, ScopeId
from fairwarning.simulation.observed_state import ObservedScope, ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

_SAME = "6 same number, same document"
_LIMITED = ("restart", "redeploy", "reimage")


class ScopeChecker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._looked_at: dict[ScopeId, Scope] = {}

    async def check(self, seen: ObservedWorld, *, has_news: bool) -> None:
        for scope in seen.scopes.values():
            current = await self._world.store.read(scope.id)
            if current is not self._looked_at.get(scope.id) or has_news:
                self._looked_at[scope.id] = current
                self._check_document(seen, scope, current)
                self._check_instances(scope, current)
        if has_news:
            self._check_limit(seen)
            self._check_batches(seen)

    def _check_document(self, seen: ObservedWorld, scope: ObservedScope, current: Scope) -> None:
        stored = (current.is_activated, current.incarnation)
        noted = (scope.is_activated, scope.incarnation)
        demand(_SAME, stored == noted, lambda: f"{scope.id} is at {stored}, the journal at {noted}")
        if current.activated_ms is None:
            return
        document = render(current, NEWEST)
        if self._world.past == 0:
            # After it was set back, the store may use a number again, but no node shows it.
            key = (scope.id, current.activated_ms, current.incarnation)
            known = self._world.documents.were_there(*key)
            same = known == {document}
            demand(_SAME, same, lambda: f"{key}: {known}")
        shown = json.loads(document)["Events"]
        expected = [e for e in scope.events.values() if e.event.announced and e.ended_ms is None]
        ids = sorted(each["EventId"] for each in shown)
        is_complete = ids == sorted(each.event.id for each in expected)
        demand("9 every event ends", is_complete, lambda: f"{scope.id} shows {ids}")
        for each in shown:
            strangers = [name for name in each["Resources"] if name not in scope.instances]
            demand("10 isolation", not strangers, lambda: f"{strangers} in {scope.id}")  # noqa: B023
            if each["NotBefore"]:
                fixed = seen.not_before.setdefault(each["EventId"], each["NotBefore"])
                moved = fixed != each["NotBefore"]
                demand("2 enough notice", not moved, lambda: f"NotBefore moved: {each}")  # noqa: B023

    def _check_instances(self, scope: ObservedScope, current: Scope) -> None:
        """Checks that each instance has the power and the model that the journal says."""
        for each in current.roster.live:
            seen, is_now = (
                (scope.power[each.name], scope.models[each.name]),
                (each.power, each.model),
            )
            demand("9 every event ends", is_now == seen, lambda: f"{each.name}: {is_now}, {seen}")  # noqa: B023

    def _check_limit(self, seen: ObservedWorld) -> None:
        pending_max = self._world.shape.operations_pending_max
        pending: dict[str, int] = {}
        for scope in seen.scopes.values():
            subscription = scope.id.split("/")[0]
            count = sum(
                e.event.operation in _LIMITED and e.event.announced for e in scope.waiting()
            )
            pending[subscription] = pending.get(subscription, 0) + count
        over = {name: count for name, count in pending.items() if pending_max < count}
        demand("limit on operations", not pending_max or not over, lambda: f"pending: {over}")

    def _check_batches(self, seen: ObservedWorld) -> None:
        """Checks that an operation on several instances began on all of them or on none."""
        for asked in self._world.requests:
            if isinstance(asked.command, OperateAll):
                events = seen.scopes[asked.scope_id].events
                begun = {event_id in events for event_id, _ in asked.command.targets}
                demand("all or none", len(begun) <= 1, lambda: f"{asked}")  # noqa: B023
