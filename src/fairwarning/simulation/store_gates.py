"""The store as one node sees it. Every call stops twice for the world, and may fail."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from fairwarning.core.instants import Instant
from fairwarning.core.model import (
    Actor,
    Event,
    EventId,
    EventType,
    InstanceName,
    Phase,
    Scope,
    ScopeId,
)
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    START,
    Choice,
    Due,
    Entry,
    Fence,
    Listener,
    Mark,
    Position,
    Receipt,
    Record,
    Signal,
    Step,
    Store,
)
from fairwarning.simulation.calls import Calls

T = TypeVar("T")


class GatedStore:
    def __init__(self, inner: Store, node: str, calls: Calls) -> None:
        self._inner = inner
        self._node = node
        self._calls = calls
        self._listeners: list[Listener] = []
        self.seen_noted: Callable[[Mapping[ScopeId, Instant]], None] = lambda _: None
        """Is called with notes of polls after they are stored."""

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    async def open(self) -> None:
        """Does nothing, because the world has opened the store."""

    async def close(self) -> None:
        """Does nothing, because other nodes may still need the store."""

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, signal: Signal) -> None:
        """Tells the listeners. The world calls this late, twice, in any order or not at all."""
        for listener in self._listeners:
            listener(signal)

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        await self._write(
            "create", lambda: self._inner.create(scopes, by=by, why=why, fences=fences)
        )

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str = "",
        counting: bool = False,
        skip_busy: bool = False,
        fences: Sequence[Fence] = (),
    ) -> Receipt:
        return await self._write(
            "transact",
            lambda: self._inner.transact(
                scope_id, step, by=by, why=why, counting=counting, fences=fences
            ),
            detail=scope_id,
            may_be_busy=skip_busy,
        )

    async def read(self, scope_id: ScopeId) -> Scope:
        return await self._ask("read", lambda: self._inner.read(scope_id), scope_id)

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        return await self._ask(
            "scope_ids", lambda: self._inner.scope_ids(after=after, limit=limit), after or ""
        )

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        return await self._ask(
            "scopes", lambda: self._inner.scopes(after=after, limit=limit), after or ""
        )

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        return await self._ask("find_event", lambda: self._inner.find_event(event_id), event_id)

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        return await self._ask("locate", lambda: self._inner.locate(address), address)

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        async def note() -> None:
            await self._inner.note_seen(seen)
            self.seen_noted(seen)

        await self._write("note_seen", note)

    async def due(self, limit: int) -> Due:
        return await self._ask("due", lambda: self._inner.due(limit))

    async def end(self) -> Position:
        return await self._ask("end", self._inner.end)

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        return await self._ask(
            "journal",
            lambda: self._inner.journal(
                after=after, scope_id=scope_id, limit=limit, inclusive=inclusive
            ),
            f"after {after}",
        )

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        return await self._ask(
            "history",
            lambda: self._inner.history(
                before=before, scope_id=scope_id, event_id=event_id, limit=limit
            ),
        )

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        return await self._ask(
            "events", lambda: self._inner.events(choice, before=before, limit=limit)
        )

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        return await self._ask("count_events", self._inner.count_events)

    async def record(self, kind: str, key: str) -> Record | None:
        return await self._ask("record", lambda: self._inner.record(kind, key), f"{kind} {key}")

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        return await self._ask(
            "records",
            lambda: self._inner.records(kind, after=after, until=until, limit=limit),
            f"{kind} {after}",
        )

    async def keep(
        self,
        kind: str,
        key: str,
        body: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> Record:
        return await self._write(
            "keep",
            lambda: self._inner.keep(
                kind, key, body, expected=expected, note=note, by=by, why=why, fences=fences
            ),
            detail=f"{kind} {key}",
        )

    async def drop(
        self,
        kind: str,
        key: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
        fences: Sequence[Fence] = (),
    ) -> bool:
        return await self._write(
            "drop",
            lambda: self._inner.drop(
                kind, key, expected=expected, note=note, by=by, why=why, fences=fences
            ),
            detail=f"{kind} {key}",
        )

    async def _ask(self, name: str, work: Callable[[], Awaitable[T]], detail: str = "") -> T:
        return await self._calls.through(self._node, name, work, detail=detail)

    async def _write(
        self,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        detail: str = "",
        may_be_busy: bool = False,
    ) -> T:
        """Runs the write to its end even if the caller is cancelled, as all our stores do."""
        call = self._calls.through(self._node, name, work, detail=detail, may_be_busy=may_be_busy)
        job = asyncio.ensure_future(call)
        # If the caller was cancelled, nobody gets the error.
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(job)
