"""Every check of a driver uses this: orders, nodes, and the count of what really happened."""

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from msgspec.structs import replace

from fairwarning.core.instants import SECOND_MS, later
from fairwarning.core.model import EventId, Instance, InstanceName, NodeId, ScopeId
from fairwarning.driver_check.nodes import CallFailed, Node, node
from fairwarning.driver_check.results import CheckFailed
from fairwarning.drivers.check_target import CheckTarget
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Found, Order

ATTEMPTS_MAX = 5
"""The engine gives an impact up after this many attempts."""
NOTES_WAITED_FOR = 10
"""How often the check looks again for an impact that the target has not counted yet. With the
pauses, this is 5 seconds.
"""
LATE_S = 0.2
"""How long the last count waits, because there may be one impact too many."""
PAUSE_S = 0.5
"""The pause before the next attempt. It is shorter than the engine's, to save time."""


@dataclass(slots=True)
class World:
    driver: str
    target: CheckTarget
    patience_s: float
    gaps_max: int = 16
    """At most this many places for a crash are tried, spread over all of them."""
    clock: SystemClock = field(default_factory=SystemClock)
    _nodes: int = 0

    def node(self) -> AbstractAsyncContextManager[Node]:
        self._nodes += 1
        return node(self.driver, f"check-node-{self._nodes}", self.patience_s)

    def order(self) -> Order:
        """Returns a new order for all instances of the target: the first attempt of a new key."""
        return self._order(self.target.handles)

    def order_for_nobody(self) -> Order:
        return self._order(("fairwarning-check-no-such-instance",))

    def _order(self, handles: tuple[str, ...]) -> Order:
        now = self.clock.now()
        return Order(
            key=EventId(str(uuid.uuid4()).upper()),
            attempt=1,
            node=NodeId("check-node"),
            lease_until_ms=later(now, 30 * SECOND_MS),
            type=self.target.type,
            scope_id=ScopeId("check/check/availability-set/check"),
            instances=tuple(
                Instance(name=InstanceName(f"check-{number}"), handle=handle)
                for number, handle in enumerate(handles)
            ),
            duration_s=self.target.duration_s,
            started_ms=now,
            settings=self.target.settings,
        )

    async def counts(self) -> Mapping[str, int]:
        count = self.target.count
        if count is None:
            return {}
        return {handle: await count(handle) for handle in self.target.handles}

    async def expect(self, before: Mapping[str, int], wanted: int, when: str) -> None:
        """Raises CheckFailed if an instance has not had the wanted number of impacts since
        `before`.
        """
        for handle in before:
            had = await self._count_since(handle, before[handle], wanted)
            if had != wanted:
                raise CheckFailed(f"{when}, {handle} had {had} impacts and not {wanted}")

    async def _count_since(self, handle: str, before: int, wanted: int) -> int:
        """Waits a while for impacts that are missing, and a moment for one too many, because the
        target may note an impact late.
        """
        assert self.target.count is not None
        for _ in range(NOTES_WAITED_FOR):
            had = await self.target.count(handle) - before
            if had >= wanted:
                break
            await asyncio.sleep(PAUSE_S)
        await asyncio.sleep(LATE_S)
        return await self.target.count(handle) - before

    async def settle(self, by: Node, order: Order, attempt: int) -> None:
        """Goes on as the engine does: asks what became of the key, and tries again."""
        reason = ""
        for number in range(attempt, attempt + ATTEMPTS_MAX):
            later_order = at_attempt(order, number)
            try:
                if await by.find(later_order) is Found.DONE:
                    return
                await by.do(later_order)
            except CallFailed as failure:
                reason = str(failure)
                await asyncio.sleep(PAUSE_S)
            else:
                return
        raise CheckFailed(f"{ATTEMPTS_MAX} further attempts failed; the last said: {reason}")

    async def expect_done(self, by: Node, order: Order, attempt: int) -> None:
        found = await by.find(at_attempt(order, attempt))
        if found is not Found.DONE:
            raise CheckFailed(f"the impact was over, and find said {found.value!r} on another node")


def at_attempt(order: Order, attempt: int) -> Order:
    return replace(order, attempt=attempt, may_be_under_way=attempt > 1)
