"""The store for clusters. Any number of equal nodes, without a leader, share one PostgreSQL.

The difficult parts have modules of their own: how a scope is changed (`transactions.py`),
why no journal entry is lost (`journal.py`), how nodes learn of each other's commits (`signals.py`),
and why no call hangs (`database.py`).
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, EventId, Scope, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    START,
    Clock,
    Due,
    Entry,
    Fence,
    Position,
    Receipt,
    Record,
    Step,
    StoreCondition,
    StoreDown,
    call_limit_s,
    within,
)
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres.commit_poll import CommitPoll
from fairwarning.stores.postgres.database import APPLICATION, Database, conninfo_of, run
from fairwarning.stores.postgres.errors import explained
from fairwarning.stores.postgres.feed_delay import FeedDelay
from fairwarning.stores.postgres.journal import NUMBER_MAX, read_back, read_page
from fairwarning.stores.postgres.node_registry import NodeRegistry
from fairwarning.stores.postgres.schema import continue_journal, migrate
from fairwarning.stores.postgres.signals import Signals
from fairwarning.stores.postgres.silence import limit_silence
from fairwarning.stores.postgres.transactions import Transactions
from fairwarning.stores.sql_store import SqlStore
from fairwarning.stores.statements import (
    Statement,
    Value,
    delete_record_statement,
    put_record_statement,
)

CONNECTIONS_MAX = 10
"""How many connections all calls of one node share. Each node has two more for signals."""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class ShieldedCalls:
    """Runs each call to its end, even if its caller is cancelled before, or waits no longer."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T], *, is_long: bool = False) -> T:
        """Raises StoreDown if the caller has a limit (`call_limit_s`) and the call takes longer. A
        call that is long by its nature has no limit.
        """
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        limit_s = None if is_long else call_limit_s.get()
        return await within(limit_s, asyncio.shield(task))

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Its caller may have gone. Then nobody else looks at the exception.
            task.exception()

    async def finish(self) -> None:
        await asyncio.gather(*self._running, return_exceptions=True)


class _Parts(NamedTuple):
    database: Database
    signals: Signals
    transactions: Transactions
    calls: ShieldedCalls
    registry: NodeRegistry | None
    commit_poll: CommitPoll
    feed_delay: FeedDelay


class PostgresStore(SqlStore):
    def __init__(
        self,
        dsn: str,
        clock: Clock | None = None,
        *,
        connections_max: int = CONNECTIONS_MAX,
        direct_dsn: str = "",
        node: str = "",
        silent_s: float | None = None,
    ) -> None:
        """`clock` is for tests. Without it, the store uses the clock of the database server.

        `direct_dsn` leads to the same database without a pooler, which LISTEN needs. `node` is the
        name under which others see this node. Without it, they don't see it. A connection that is
        silent for `silent_s` is given up; None sets no such limit.
        """
        super().__init__()
        self._node = node
        self._dsn = dsn
        self._direct_dsn = direct_dsn
        self._clock = clock
        self._connections_max = connections_max
        self._silent_s = silent_s
        self._opened: _Parts | None = None

    @property
    def is_shared(self) -> bool:
        """Returns True, except if the store has a clock of its own for a test."""
        return self._clock is None

    async def open(self) -> None:
        """Connects to the server and migrates its schema. Raises StoreDown or SchemaTooNew."""
        assert self._opened is None, "it is open already"
        try:
            conninfo = self._conninfo(self._dsn)
            migrations = load_migrations("postgres")
            await migrate(conninfo, migrations, tell=_log.warning, leaves_contracts=True)
            signals = await self._open_signals(conninfo)
        except psycopg.Error as error:
            raise explained(error) from error
        database = Database(conninfo, self._connections_max, continue_journal)
        transactions = Transactions(database, signals, len(migrations), self._clock)
        registry = NodeRegistry(database, len(migrations), self._node) if self._node else None
        commit_poll = CommitPoll(database, self._listeners, signals.is_deaf)
        feed_delay = FeedDelay(database)
        if self._clock is None:
            commit_poll.start()
            feed_delay.start()
        self._opened = _Parts(
            database, signals, transactions, ShieldedCalls(), registry, commit_poll, feed_delay
        )
        if registry is not None:
            try:
                await registry.open()
            except BaseException:
                await self.close()
                raise

    def _conninfo(self, dsn: str) -> str:
        limited = dsn if self._silent_s is None else limit_silence(dsn, self._silent_s)
        return conninfo_of(limited, f"{APPLICATION}/{self._node}" if self._node else APPLICATION)

    async def _open_signals(self, conninfo: str) -> Signals:
        if not self._direct_dsn:
            signals = Signals(conninfo, self._listeners)
            await signals.open()
            return signals
        try:
            signals = Signals(conninfo, self._listeners, self._conninfo(self._direct_dsn))
            await signals.open()
        except psycopg.Error as error:
            raise explained(error, where="PostgreSQL at --store-direct") from error
        return signals

    async def close(self) -> None:
        """Waits for the calls that have begun, and disconnects. Later calls fail."""
        if self._opened is None:
            return
        parts, self._opened = self._opened, None
        await parts.commit_poll.close()
        await parts.feed_delay.close()
        await parts.calls.finish()
        if parts.registry is not None:
            await parts.registry.close()
        await parts.signals.close()
        await parts.database.close()

    @property
    def condition(self) -> StoreCondition:
        if self._opened is None:
            return StoreCondition()
        signals, feed_delay = self._opened.signals, self._opened.feed_delay
        return StoreCondition(
            hears_signals=not signals.is_deaf.is_set(),
            feed_delay_s=feed_delay.delay_s,
            warnings=tuple(filter(None, [signals.trouble, feed_delay.trouble])),
        )

    async def create(
        self, scopes: Sequence[Scope], *, by: Actor, why: str = "", fences: Sequence[Fence] = ()
    ) -> None:
        parts = self._parts
        creation = parts.transactions.create(scopes, by, why, fences)
        await parts.calls.run(creation, is_long=True)

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
        parts = self._parts
        return await parts.calls.run(
            parts.transactions.transact(
                scope_id,
                step,
                by=by,
                why=why,
                counting=counting,
                skip_busy=skip_busy,
                fences=fences,
            )
        )

    async def note_seen(self, seen: Mapping[ScopeId, Instant]) -> None:
        parts = self._parts
        await parts.calls.run(parts.transactions.note_seen(seen))

    async def due(self, limit: int) -> Due:
        now = None if self._clock is None else self._clock.now()
        ((now_ms, scope_ids, next_deadline_ms),) = await self._rows("due", now_ms=now, limit=limit)
        return Due(now_ms=now_ms, scope_ids=tuple(scope_ids), next_deadline_ms=next_deadline_ms)

    async def end(self) -> Position:
        ((xid,),) = await self._rows("journal_end")
        return Position(f"{xid}-{NUMBER_MAX}")

    async def journal(
        self,
        *,
        after: Position = START,
        scope_id: ScopeId | None = None,
        limit: int,
        inclusive: bool = False,
    ) -> list[Entry]:
        parts = self._parts
        page = read_page(parts.database, after, scope_id, limit, inclusive=inclusive)
        return await parts.calls.run(page)

    async def history(
        self,
        *,
        before: Position | None = None,
        scope_id: ScopeId | None = None,
        event_id: EventId | None = None,
        limit: int,
    ) -> list[Entry]:
        parts = self._parts
        return await parts.calls.run(read_back(parts.database, before, scope_id, event_id, limit))

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
        parts = self._parts
        statement = put_record_statement(kind, key, body, expected)
        return await parts.calls.run(
            parts.transactions.keep(statement, note=note, by=by, why=why, fences=fences)
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
        parts = self._parts
        statement = delete_record_statement(kind, key)
        return await parts.calls.run(
            parts.transactions.drop(
                statement, expected=expected, note=note, by=by, why=why, fences=fences
            )
        )

    @staticmethod
    def _listed(words: list[str]) -> str:
        return ",".join(words)

    async def _rows(self, name: str, **values: Value) -> list[Any]:
        parts = self._parts
        return await parts.calls.run(_select(parts.database, Statement(name, values)))

    @property
    def _parts(self) -> _Parts:
        if self._opened is None:
            raise StoreDown("the store is not open; open it first")
        return self._opened


async def _select(database: Database, statement: Statement) -> list[Any]:
    async with database.connection() as connection:
        return (await run(connection, [statement]))[statement.name]
