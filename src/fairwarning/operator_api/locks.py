"""Locks on resources that have several scopes, so that only one caller changes them at a time.

Each scope is a transaction of its own, so two callers that resize a scale set at once would both
count the same instances. The lock is a lease (`record_leases.py`): the holder keeps it while it
works, and a holder that was paused until its lease ended can change nothing more.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

import msgspec

from fairwarning.core.commands import Command
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.engine.protocols import (
    Fence,
    FenceBroken,
    Receipt,
    Record,
    RecordChanged,
    Step,
    Store,
    StoreDown,
)
from fairwarning.engine.service import Engine
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.record_leases import Hold, Leased

KIND = "held"


class Lock(Leased, frozen=True, kw_only=True):
    by: str


@asynccontextmanager
async def held(control: Control, what: str, *, by: Actor) -> AsyncIterator[Control]:
    """Hold the lock named `what`. The yielded control can change nothing after the lock is lost.

    Raises Problem if another caller holds the lock, or has taken it over.
    """
    leases = control.leases
    before, now = await leases.store.record(KIND, what), await leases.now()
    if before is not None:
        other = msgspec.json.decode(before.body, type=Lock)
        if not leases.is_over(other, now):
            raise _busy(what, other.by)
    hold = Hold(leases, KIND, what, Lock(by=str(by)), by=by)
    try:
        await leases.take(hold, before, now)
    except RecordChanged:
        raise _busy(what, "somebody else") from None
    try:
        async with leases.kept(hold):
            yield behind(control, hold)
    except FenceBroken as broken:
        if hold.is_behind(broken):
            raise _lost(what) from None
        raise
    finally:
        # If the store is down, the lease runs out. If the fence is broken, another has the lock.
        with suppress(StoreDown, FenceBroken):
            await hold.drop()


def _busy(what: str, who: str) -> Problem:
    return Problem(
        409,
        "resource-busy",
        f"{what} is just being changed by {who}; nothing was done, ask again in a moment",
        headers={"Retry-After": "1"},
    )


def _lost(what: str) -> Problem:
    return Problem(
        409,
        "lock-lost",
        f"this request was held up for so long that somebody else has taken over {what}; what it "
        "did before stays and nothing more was done, so look and ask again",
    )


def behind(control: Control, hold: Hold[Any]) -> Control:
    """Return a control whose changes are stored only while `hold` is held.

    Later changes raise FenceBroken.
    """
    store = cast(Store, _FencedStore(control.store, hold))
    return replace(
        control,
        engine=cast(Engine, _FencedEngine(control.engine, hold)),
        store=store,
        tokens=control.tokens.through(store),
        rollouts=control.rollouts.through(store),
        notifications=control.notifications.through(store),
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
        """Return the attribute of the real store. All methods that write are defined above."""
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
        **more: Any,
    ) -> Receipt:
        async with self._hold.fence() as fence:
            every = [*fences, fence]
            return await self._engine.submit(
                scope_id, command, by=by, why=why, fences=every, **more
            )

    async def approve(
        self, event_id: EventId, *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> Receipt:
        async with self._hold.fence() as fence:
            return await self._engine.approve(event_id, by=by, why=why, fences=[*fences, fence])

    def new_id(self) -> EventId:
        return self._engine.new_id()
