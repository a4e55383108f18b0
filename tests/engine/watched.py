"""A node on a shared store that may step back, and every document that it has shown."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import Schedule
from fairwarning.core.model import EventId, EventType, Scope
from fairwarning.core.transitions import Activated
from fairwarning.engine import follower, rereads
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.scope_view import View
from fairwarning.engine.service import Engine
from tests.core.builders import names
from tests.engine.harness import ME, Rig
from tests.engine.shared_store import SharedStore
from tests.support.patience import HANG_S

PATCHED = ((follower, "RECHECK_S"), (follower, "CHECK_EVERY_S"), (follower, "OUTAGE_PAUSE_S"),
           (rereads, "PAUSE_S"))  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in PATCHED:
        monkeypatch.setattr(module, name, 0.002)


class Watched:
    """An engine that shows a fleet of a shared store, and every document that it has shown."""

    def __init__(self, rig: Rig, store: SharedStore, engine: Engine, scope: Scope) -> None:
        self.rig = rig
        self.store = store
        self.engine = engine
        self.scope_id = scope.id
        self._numbers = iter(range(100, 10_000))
        self.shown: dict[str, bytes] = {}

    @property
    def view(self) -> View:
        return self.engine.views._views[self.scope_id]

    def is_proved(self) -> bool:
        """Whether the journal has shown all that the node has heard of."""
        assert self.engine._follower is not None
        unconfirmed = self.engine._follower._unconfirmed
        return not unconfirmed._new and not unconfirmed._old

    def see(self) -> str:
        """Looks at the document as an instance does. A tag has one document, for ever."""
        document = self.view.document(NEWEST)
        assert self.shown.setdefault(self.view.tag, document) == document
        return self.view.tag

    async def schedule(
        self,
        target: str = "web-0",
        type: EventType = EventType.REBOOT,
        *,
        node: Engine | None = None,
    ) -> EventId:
        id = EventId(f"00000000-0000-4000-8000-{next(self._numbers):012X}")
        command = Schedule(event_id=id, type=type, targets=names(target))
        await (node or self.engine).submit(self.scope_id, command, by=ME)
        return id

    async def schedule_elsewhere(self, target: str) -> EventId:
        """By a node that has shown nothing, so it can't know that the store has stepped back."""
        other = await self.rig.node("n2")
        try:
            return await self.schedule(target, node=other)
        finally:
            await other.stop()

    async def until(self, condition: Callable[[], bool | Awaitable[bool]]) -> None:
        async with asyncio.timeout(HANG_S):
            while True:
                answer = condition()
                if await answer if isinstance(answer, Awaitable) else answer:
                    return
                view = self.engine.views._views.get(self.scope_id)
                if view is not None and view.activated_ms is not None:
                    self.see()
                await asyncio.sleep(0.001)

    async def until_true(self) -> None:
        """Shows what is stored."""

        async def is_true() -> bool:
            return self.view.is_of(await self.store.read(self.scope_id))

        await self.until(is_true)
        self.see()

    async def anew(self) -> list[Activated]:
        entries = await self.store.journal(scope_id=self.scope_id, limit=10_000)
        found = [each.transition for each in entries]
        return [each for each in found if isinstance(each, Activated) and each.reason]


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    clock = VirtualClock()
    store = SharedStore(clock)
    rig = Rig(store, clock)
    engine = await rig.node()
    await engine.show()
    scope = await rig.declare(engine)
    found = Watched(rig, store, engine, scope)
    try:
        await found.until(lambda: scope.id in engine.views._views)
        await found.until_true()
        yield found
    finally:
        store.down.clear()
        store.broken.clear()
        await engine.stop()
