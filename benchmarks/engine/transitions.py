"""Measures durable transactions a second, beside the same statements by the bare driver.

Rounds are interleaved, each on a fresh database, and the medians compared.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import psycopg
import uvloop
from psycopg import AsyncClientCursor

from benchmarks.engine.workload import ME, bare_transactions, commands, scopes
from fairwarning.boot import make_engine, make_store
from fairwarning.core.model import Scope
from fairwarning.engine.clocks import SystemClock
from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres.database import QUERIES as POSTGRES
from fairwarning.stores.postgres.store import CONNECTIONS_MAX
from fairwarning.stores.sqlite.connection import QUERIES as SQLITE
from fairwarning.stores.sqlite.connection import connect
from tests.support.postgres import PostgresServer

PAIRS = {1: 400, 64: 40}
"""Pairs of transactions by the number of callers: enough to make the first ones negligible."""
ROUNDS = 9
NEWEST = len(load_migrations("postgres"))


async def ours(url: str, callers: int) -> float:
    """Runs the callers, each on a scope of its own, waiting for every answer."""
    clock = SystemClock()
    store = make_store(url, clock)
    await store.open()
    engine = make_engine(store, clock)
    fleet = scopes(callers)
    await store.create(fleet, by=ME)

    async def call(scope: Scope) -> int:
        done = 0
        for command in commands(scope, PAIRS[callers]):
            await engine.submit(scope.id, command, by=ME)
            done += 1
        return done

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(call(scope) for scope in fleet)))
    took = time.perf_counter() - began
    await store.close()
    return done / took


async def bare_sqlite(url: str, callers: int) -> float:
    path = Path(url.removeprefix("sqlite:///"))
    clock = SystemClock()
    store = make_store(url, clock)
    await store.open()
    fleet = scopes(callers)
    await store.create(fleet, by=ME)
    await store.close()
    transactions = [
        transaction
        for scope in fleet
        for transaction in bare_transactions(scope, PAIRS[callers], clock.now())
    ]
    connection = connect(path)
    began = time.perf_counter()
    for transaction in transactions:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(SQLITE["read_scope"], {"id": transaction.scope_id}).fetchone()
        for statement in transaction.statements:
            connection.execute(SQLITE[statement.name], statement.values)
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return len(transactions) / took


async def bare_postgres(url: str, callers: int) -> float:
    """Uses as many connections as our pool, with two round trips for each transaction."""
    clock = SystemClock()
    store = make_store(url, clock)
    await store.open()
    fleet = scopes(callers)
    await store.create(fleet, by=ME)
    await store.close()
    work = [bare_transactions(scope, PAIRS[callers], clock.now()) for scope in fleet]
    names = ("begin", "check_writer", "enter_scope", "lock_scope", "roster", "clock")
    connections = min(callers, CONNECTIONS_MAX)

    async def call(number: int) -> int:
        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, cursor_factory=AsyncClientCursor
        ) as connection:
            cursor = AsyncClientCursor(connection)
            done = 0
            for transactions in work[number::connections]:
                for transaction in transactions:
                    opening = b";".join(POSTGRES[name] for name in names)
                    await cursor.execute(opening, {"id": transaction.scope_id, "newest": NEWEST})
                    script = ";".join(
                        cursor.mogrify(POSTGRES[each.name], each.values)
                        for each in transaction.statements
                    )
                    await cursor.execute((script + ";COMMIT").encode())
                    done += 1
            return done

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(call(number) for number in range(connections))))
    return done / (time.perf_counter() - began)


Run = Callable[[str, int], Coroutine[None, None, float]]


def compare(name: str, url: Callable[[], str], bare: Run, callers: int) -> None:
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(ROUNDS):
        rates["ours"].append(uvloop.run(ours(url(), callers)))
        rates["bare"].append(uvloop.run(bare(url(), callers)))
    mine, theirs = statistics.median(rates["ours"]), statistics.median(rates["bare"])
    print(f"{name:<12} {callers:>3} callers  ours {mine:>8,.0f}/s  bare {theirs:>8,.0f}/s  "
          f"ratio {mine / theirs:.2f}", flush=True)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        number = iter(range(10_000))
        for callers in (1, 64):
            compare("SQLite", lambda: f"sqlite:///{folder}/{next(number)}.db", bare_sqlite, callers)
    server = PostgresServer(fsync="on", full_page_writes="on")
    server.start()
    try:
        for callers in (1, 64):
            compare("PostgreSQL", lambda: _new_database(server), bare_postgres, callers)
    finally:
        server.remove()


def _new_database(server: PostgresServer) -> str:
    database = server.create_database()
    host = server.dsn().split()[0].removeprefix("host=")
    return f"postgresql://postgres@/{database}?host={host}"


if __name__ == "__main__":
    main()
