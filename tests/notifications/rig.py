"""An engine with notifications on a virtual clock, and short ways to make things happen."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from fairwarning.core.commands import Approve, Operate, Schedule
from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    EventId,
    EventType,
    InstanceName,
    OperationKind,
    Scope,
    instance_actor,
)
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.engine.service import Engine
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.notifications.model import (
    Filters,
    Message,
    Outcome,
    Target,
    TargetDraft,
    TargetKind,
)
from fairwarning.notifications.sender import NetworkSender
from fairwarning.stores.memory import MemoryStore
from tests.engine.harness import ME, TEST_WEB, Rig


class SharedStore(MemoryStore):
    """Says that other nodes write too, as PostgreSQL does."""

    @property
    def is_shared(self) -> bool:
        return True


class WatchedSender(NetworkSender):
    """The real one; a test can wait until nothing is under way."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._clock_of_test = clock
        self._under_way = 0
        self._ended = asyncio.Event()

    async def send(self, target: Target, message: Message) -> Outcome:
        self._under_way += 1
        try:
            return await super().send(target, message)
        finally:
            self._under_way -= 1
            self._ended.set()

    async def idle(self) -> None:
        """All that is due has been tried, and what became of it is kept."""
        await self._clock_of_test.settle()
        while self._under_way:
            self._ended.clear()
            await self._ended.wait()
            await self._clock_of_test.settle()


class NotificationRig:
    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.rig = Rig(store, clock)
        self.store = store
        self.clock = clock
        self.sender = WatchedSender(clock)
        self.engine: Engine
        self.scope: Scope
        self._running: list[Notifications] = []

    async def node(self) -> Notifications:
        notifications = Notifications(store=self.store, clock=self.clock, sender=self.sender)
        await notifications.start()
        await self.clock.settle()
        self._running.append(notifications)
        return notifications

    async def webhook(
        self,
        notifications: Notifications,
        url: str,
        name: str = "hook",
        filters: Filters | None = None,
    ) -> Target:
        draft = TargetDraft(
            name=name, kind=TargetKind.WEBHOOK, url=url, filters=filters or Filters()
        )
        return await notifications.create(draft, by=ME)

    async def reboot(self, *names: str) -> EventId:
        """Announced for 15 minutes from now."""
        id = self.engine.new_id()
        targets = tuple(InstanceName(each) for each in names)
        command = Schedule(event_id=id, type=EventType.REBOOT, targets=targets)
        await self.engine.submit(self.scope.id, command, by=ME, why="patch day")
        return id

    async def operate(self, kind: OperationKind, name: str) -> None:
        id = self.engine.new_id()
        command = Operate(event_id=id, kind=kind, instance=InstanceName(name))
        await self.engine.submit(self.scope.id, command, by=ME)

    async def pass_time(self, by_ms: int) -> None:
        """With every retry on the way, each after the one before has its answer."""
        end = self.clock.now() + by_ms
        await self.sender.idle()
        while (until := self.clock.next_ms()) is not None and until <= end:
            await self.clock.advance_to(until)
            await self.sender.idle()
        await self.clock.advance_to(Instant(end))

    async def approve(self, id: EventId, name: str) -> None:
        actor = instance_actor(InstanceName(name))
        await self.engine.submit(self.scope.id, Approve(event_id=id, by=actor), by=actor)

    async def stop(self, only: Iterable[Notifications] | None = None) -> None:
        for notifications in list(self._running if only is None else only):
            self._running.remove(notifications)
            await notifications.stop()


@asynccontextmanager
async def notification_rig(
    store: Store | None = None, clock: VirtualClock | None = None
) -> AsyncIterator[NotificationRig]:
    clock = clock or VirtualClock()
    rig = NotificationRig(store or MemoryStore(clock), clock)
    rig.engine = await rig.rig.node()
    rig.scope = await rig.rig.declare(rig.engine, TEST_WEB)
    try:
        yield rig
    finally:
        await rig.stop()
        await rig.engine.stop()
