"""What the SQL stores share: their reads, and the plan of one transaction.

Each store runs the named queries in its own way.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairwarning.common.loop_slices import map_in_slices
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
from fairwarning.engine.protocols import (
    Choice,
    Listener,
    Mark,
    Moment,
    Receipt,
    Record,
    Signal,
    Step,
    StoreCondition,
)
from fairwarning.stores import statements
from fairwarning.stores.codec import Stored, event_of, record_of, scope_of
from fairwarning.stores.event_queries import counts_of, page_of
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.statements import Statement, Value
from fairwarning.stores.writes import unknown_event, unknown_scope, writes_of


class SqlStore(ABC):
    def __init__(self) -> None:
        self._listeners = Listeners()

    @abstractmethod
    async def _rows(self, name: str, **values: Value) -> list[Any]:
        """Returns the rows of the query with this name. Raises StoreDown."""

    @staticmethod
    @abstractmethod
    def _listed(words: list[str]) -> str:
        """Returns a list of texts as one query parameter, in the form that the database takes."""

    @property
    def condition(self) -> StoreCondition:
        return StoreCondition()

    def listen(self, listener: Listener) -> None:
        self._listeners.add(listener)

    async def read(self, scope_id: ScopeId) -> Scope:
        rows = await self._rows("read_scope", id=scope_id)
        if not rows:
            raise unknown_scope(scope_id)
        return scope_of(rows[0])

    async def scope_ids(self, *, after: ScopeId | None = None, limit: int) -> list[ScopeId]:
        return [id for (id,) in await self._rows("scope_ids", after=after or "", limit=limit)]

    async def scopes(self, *, after: ScopeId | None = None, limit: int) -> list[Scope]:
        rows = await self._rows("scopes", after=after or "", limit=limit)
        return await map_in_slices(scope_of, rows)

    async def find_event(self, event_id: EventId) -> tuple[ScopeId, Event]:
        rows = await self._rows("find_event", id=event_id)
        if not rows:
            raise unknown_event(event_id)
        return event_of(rows[0])

    async def locate(self, address: str) -> tuple[ScopeId, InstanceName] | None:
        rows = await self._rows("locate", address=address)
        return rows[0] if rows else None

    async def events(
        self, choice: Choice, *, before: Mark | None = None, limit: int
    ) -> list[tuple[ScopeId, Event]]:
        page = page_of(choice, before, limit, self._listed)
        return await map_in_slices(event_of, await self._rows(page.name, **page.values))

    async def count_events(self) -> Mapping[tuple[EventType, Phase], int]:
        return counts_of(await self._rows("count_events"))

    async def record(self, kind: str, key: str) -> Record | None:
        rows = await self._rows("record", kind=kind, key=key)
        return record_of(rows[0]) if rows else None

    async def records(
        self, kind: str, *, after: str = "", until: str | None = None, limit: int
    ) -> list[Record]:
        rows = await self._rows("records", kind=kind, after=after, until=until, limit=limit)
        return await map_in_slices(record_of, rows)


class TransactionPlan(Struct, frozen=True, kw_only=True):
    receipt: Receipt
    statements: tuple[Statement, ...]
    """The statements to execute before the commit. They are empty if nothing has changed."""
    signals: tuple[Signal, ...]


def plan_transaction(
    stored: Stored, step: Step, moment: Moment, *, by: Actor, why: str
) -> TransactionPlan:
    """Runs the step on the stored scope and returns what the store must write. Raises what the step
    raises, and Refused if two instances share an address.
    """
    before, now = stored.scope, moment.now_ms
    change = step(before, moment)
    deadline = change.next_deadline_ms
    if not change.transitions:
        has_moved = deadline != stored.next_deadline_ms
        return TransactionPlan(
            receipt=Receipt(scope=before, at_ms=now, transitions=()),
            statements=(statements.new_deadline(before.id, deadline),) if has_moved else (),
            signals=(),
        )
    writes = writes_of(before, change)
    return TransactionPlan(
        receipt=Receipt(scope=writes.scope, at_ms=now, transitions=change.transitions),
        statements=statements.change(writes, at_ms=now, by=by, why=why),
        signals=(writes.signal,),
    )
