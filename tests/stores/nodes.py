"""Several nodes on one PostgreSQL, and a stranger who holds locks there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg

from fairwarning.core.model import ScopeId
from fairwarning.engine.protocols import Clock
from fairwarning.stores.postgres import PostgresStore
from tests.support.patience import HANG_S


@asynccontextmanager
async def nodes(
    dsn: str, number: int, clock: Clock | None = None, connections_max: int = 5
) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as stack:
        stores = [PostgresStore(dsn, clock, connections_max=connections_max) for _ in range(number)]
        for store in stores:
            stack.push_async_callback(store.close)
            await store.open()
        yield stores


class Stranger:
    """Another program in the same database."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def execute(self, query: str, *values: object) -> list[Any]:
        cursor = await self._connection.execute(query.encode(), values or None)
        return await cursor.fetchall() if cursor.description else []

    async def enter(self, scope_id: ScopeId) -> None:
        """As another node does, and stays."""
        await self.execute("BEGIN")
        await self.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", scope_id)

    async def lock_row(self, scope_id: ScopeId) -> None:
        await self.execute("BEGIN")
        await self.execute("SELECT 1 FROM scopes WHERE id = %s FOR UPDATE", scope_id)

    async def leave(self) -> None:
        await self.execute("COMMIT")

    async def now_ms(self) -> int:
        rows = await self.execute("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)")
        return int(rows[0][0])

    async def wait_until_blocked(self, number: int = 1) -> None:
        """So many others wait for a lock."""
        await self._wait_for_others("wait_event_type = 'Lock'", number)

    async def wait_until_looked(self) -> None:
        """A reader has asked for the journal and has its answer."""
        await self._wait_for_others("state = 'idle' AND query LIKE '%FROM journal%'", 1)

    async def wait_until_looked_back(self) -> None:
        """A reader of the history has found that it must wait."""
        await self._wait_for_others(
            "query LIKE '% < journal_number%' AND query NOT LIKE '%FROM%'", 1
        )

    async def _wait_for_others(self, condition: str, number: int) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            f"AND pid <> pg_backend_pid() AND {condition}"
        )

        async def are_there() -> bool:
            # Within a transaction, what was looked at once stays as it was.
            await self.execute("SELECT pg_stat_clear_snapshot()")
            return bool((await self.execute(query))[0][0] >= number)

        await wait_for(are_there)


@asynccontextmanager
async def stranger(dsn: str) -> AsyncIterator[Stranger]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield Stranger(connection)


async def wait_for(condition: Callable[[], Any]) -> None:
    """For a level, with a bound; it may be a plain or an asynchronous question."""
    async with asyncio.timeout(HANG_S):
        while True:
            answer = condition()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.005)
