"""Every call of a node to the store stops twice: before it happens and before it answers.

The world decides which stopped call goes on, fails, or never goes on because its node is
dead. So any interleaving of nodes and a crash between any two steps can be had.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

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
from fairwarning.engine.ports import (
    START,
    Choice,
    Due,
    Entry,
    Listener,
    Mark,
    Position,
    Receipt,
    Record,
    ScopeBusy,
    Step,
    Store,
    StoreDown,
)


class Verdict(Enum):
    GO_ON = "go on"
    FAIL = "fail"
    BUSY = "busy"


@dataclass(slots=True, eq=False)
class Call:
    """A call that waits for the world's verdict."""

    node: str
    name: str
    is_done: bool
    may_be_busy: bool
    verdict: asyncio.Future[Verdict]

    def __str__(self) -> str:
        return f"{self.node} {self.name} {'answers' if self.is_done else 'asks'}"


class GatedStore:
    """One node's way to the shared store."""

    def __init__(self, inner: Store, node: str, waiting: list[Call]) -> None:
        self._inner = inner
        self._node = node
        self._waiting = waiting
        self._listener: Listener | None = None

    @property
    def is_shared(self) -> bool:
        return True

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    @property
    def listener(self) -> Listener | None:
        """The world delivers signals itself, late, twice or not at all."""
        return self._listener

    async def create(self, scopes: Sequence[Scope], *, by: Actor, why: str = "") -> None:
        await self._inner.create(scopes, by=by, why=why)

    async def transact(
        self,
        scope_id: ScopeId,
        step: Step,
        *,
        by: Actor,
        why: str = "",
        counting: bool = False,
        skip_busy: bool = False,
    ) -> Receipt:
        await self._stop("transact", is_done=False, may_be_busy=skip_busy)
        receipt = await self._inner.transact(scope_id, step, by=by, why=why, counting=counting)
        await self._stop("transact", is_done=True)
        return receipt

    async def read(self, scope_id: ScopeId) -> Scope:
        return await self._inner.read(scope_id)

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        return await self._inner.scope_ids(after=after, limit=limit)

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        return await self._inner.scopes(after=after, limit=limit)

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        return await self._inner.find_event(event_id)

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        return await self._inner.locate(address)

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        await self._inner.note_seen(seen)

    async def due(self, limit: int) -> Due:
        await self._stop("due", is_done=False)
        due = await self._inner.due(limit)
        await self._stop("due", is_done=True)
        return due

    async def end(self) -> Position:
        return await self._inner.end()

    async def journal(
        self, *, after: Position = START, scope_id: ScopeId | None = None, limit: int
    ) -> list[Entry]:
        return await self._inner.journal(after=after, scope_id=scope_id, limit=limit)

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        return await self._inner.history(
            before=before, scope_id=scope_id, event_id=event_id, limit=limit
        )

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        return await self._inner.events(choice, before=before, limit=limit)

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        return await self._inner.count_events()

    async def record(self, kind: str, key: str) -> Record | None:
        return await self._inner.record(kind, key)

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        return await self._inner.records(kind, after=after, until=until, limit=limit)

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
    ) -> Record:
        return await self._inner.keep(kind, key, body, expected=expected, note=note, by=by, why=why)

    async def drop(
        self,
        kind: str,
        key: str,
        *,
        expected: int | None = None,
        note: Noted | None = None,
        by: Actor,
        why: str = "",
    ) -> bool:
        return await self._inner.drop(kind, key, expected=expected, note=note, by=by, why=why)

    async def _stop(self, name: str, *, is_done: bool, may_be_busy: bool = False) -> None:
        verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append(Call(self._node, name, is_done, may_be_busy, verdict))
        match await verdict:
            case Verdict.FAIL:
                raise StoreDown("simulated outage")
            case Verdict.BUSY:
                raise ScopeBusy
            case Verdict.GO_ON:
                return
