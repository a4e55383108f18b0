"""A control plane whose every change is stored only while its caller holds a record.

What runs behind it need not know: it asks the same engine and the same store. What works on
its own, such as a ticker or a worker, never does, for it outlives the hold.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from fairwarning.control.context import Control
from fairwarning.control.leases import Hold
from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.engine.protocols import Fence, Receipt, Record, Step, Store
from fairwarning.engine.service import Engine


def behind(control: Control, hold: Hold[Any]) -> Control:
    """Its changes raise FenceBroken once somebody else has the record."""
    store = cast(Store, _FencedStore(control.store, hold))
    return replace(
        control,
        engine=cast(Engine, _FencedEngine(control.engine, hold)),
        store=store,
        tokens=control.tokens.through(store),
        rollouts=control.rollouts.through(store),
        notices=control.notices.through(store),
    )


class _FencedStore:
    def __init__(self, store: Store, hold: Hold[Any]) -> None:
        self._store = store
        self._hold = hold

    async def create(
        self, scopes: Sequence[Scope], *, fences: Sequence[Fence] = (), **more: Any
    ) -> None:
        async with self._hold.fence() as fence:
            await self._store.create(scopes, fences=[*fences, fence], **more)

    async def transact(
        self, scope_id: ScopeId, step: Step, *, fences: Sequence[Fence] = (), **more: Any
    ) -> Receipt:
        async with self._hold.fence() as fence:
            return await self._store.transact(scope_id, step, fences=[*fences, fence], **more)

    async def keep(
        self, kind: str, key: str, body: str, *, fences: Sequence[Fence] = (), **more: Any
    ) -> Record:
        async with self._hold.fence() as fence:
            return await self._store.keep(kind, key, body, fences=[*fences, fence], **more)

    async def drop(self, kind: str, key: str, *, fences: Sequence[Fence] = (), **more: Any) -> bool:
        async with self._hold.fence() as fence:
            return await self._store.drop(kind, key, fences=[*fences, fence], **more)

    def __getattr__(self, name: str) -> Any:
        """Whatever only reads."""
        return getattr(self._store, name)


class _FencedEngine:
    def __init__(self, engine: Engine, hold: Hold[Any]) -> None:
        self._engine = engine
        self._hold = hold

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        async with self._hold.fence() as fence:
            await self._engine.create(scopes, by=by, why=why, fences=[*fences, fence])

    async def submit(
        self,
        scope_id: ScopeId,
        command: Command,
        *,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        async with self._hold.fence() as fence:
            every = [*fences, fence]
            return await self._engine.submit(scope_id, command, by=by, why=why, fences=every)

    async def approve(
        self, event_id: EventId, *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> Receipt:
        async with self._hold.fence() as fence:
            return await self._engine.approve(event_id, by=by, why=why, fences=[*fences, fence])

    def new_id(self) -> EventId:
        return self._engine.new_id()
