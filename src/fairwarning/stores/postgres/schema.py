"""Migrates the database to the newest schema while nodes use it.

Theory of operation. Each migration is one transaction. It takes an advisory lock of the
transaction, so that two migrators never run the same migration, and so that nothing is left behind
in a connection pool. A migration that waits for the lock of a table makes later writers wait too.
So it gives up after LOCK_WAIT_MS, lets the writers pass, and tries again.

A contract migration first locks the table of the floor. Every write transaction reads that table
first. So at that moment no write is under way, and each later one reads the new floor. A node that
was paused for long and wakes up after the contract finds its transaction gone, or the floor raised.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psycopg

from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.migrations import (
    FLOOR_SINCE,
    RUNNING_S,
    Migration,
    Report,
    RunningNode,
    Schema,
    Tell,
    WouldHarmNodes,
    may_wait,
    missing_of,
    refuse_harm,
)
from fairwarning.stores.postgres.database import BEGIN, COMMIT, Connection, connect, run
from fairwarning.stores.postgres.errors import explained
from fairwarning.stores.statements import Statement, migration_records

LOCK_WAIT_MS = 500
"""How long writers may have to wait behind a migration that waits for the lock of a table."""
TRY_AGAIN_S = 1.0  # Longer than LOCK_WAIT_MS, so that writers get most of the time.
OTHER_MIGRATOR_S = 0.1  # Most migrations of others are over at once.
TRY_S_MAX = 60.0
"""How long a migration is tried if locks are not free. Then a person must see what holds them."""
PROGRESS_S = 5.0  # A person begins to wonder after this time.


async def migrate(
    conninfo: str,
    migrations: Sequence[Migration],
    *,
    tell: Tell = lambda _: None,
    leaves_contracts: bool = False,
) -> Report:
    """Runs the migrations that the database still needs.

    Raises SchemaTooNew if a newer version has migrated it, WouldHarmNodes if a contract has to wait
    for nodes that run, and StoreDown if a migration fails. Then the schema is as the last
    successful migration left it. With `leaves_contracts`, it tells of contracts that have to wait,
    and returns, if nothing but contracts is missing.
    """
    try:
        async with await connect(conninfo, "limit_session") as connection:
            report = await _run_missing(connection, migrations, tell, leaves_contracts)
            await continue_journal(connection)
    except psycopg.Error as error:
        raise explained(error) from error
    return report


async def read_schema(conninfo: str) -> tuple[Schema, list[RunningNode]]:
    """Returns the schema of a database, and the nodes that run on it. Raises StoreDown."""
    try:
        async with await connect(conninfo, "limit_session") as connection:
            schema = await _schema(connection)
            return schema, await _running(connection) if schema.version >= FLOOR_SINCE else []
    except psycopg.Error as error:
        raise explained(error) from error


async def _run_missing(
    connection: Connection, migrations: Sequence[Migration], tell: Tell, leaves_contracts: bool
) -> Report:
    seconds: dict[int, float] = {}
    schema = await _schema(connection)
    before, where = schema.version, f"database {connection.info.dbname!r}"
    while missing := missing_of(migrations, schema, where):
        began_s = time.monotonic()
        migration = missing[0]
        try:
            async with _progress(migration, tell):
                is_ours = await _try_until_free(connection, migration, tell)
        except WouldHarmNodes as refusal:
            if not (leaves_contracts and may_wait(missing)):
                raise
            tell(str(refusal))
            break
        if is_ours:
            seconds[migration.version] = time.monotonic() - began_s
        schema = await _schema(connection)
    return Report(before=before, after=schema.version, seconds=seconds)


async def _try_until_free(connection: Connection, migration: Migration, tell: Tell) -> bool:
    """Runs the migration as soon as its locks are free. Returns False if another program ran it."""
    until_s = time.monotonic() + TRY_S_MAX
    while True:
        try:
            return await _run_one(connection, migration)
        except _OtherMigrator as problem:
            if time.monotonic() > until_s:
                raise StoreDown(
                    f"another program has been migrating the database for {TRY_S_MAX:.0f} s; try "
                    "again when it is done"
                ) from problem
            await asyncio.sleep(OTHER_MIGRATOR_S)
        except psycopg.errors.LockNotAvailable:
            if time.monotonic() > until_s:
                raise
            tell(f"{migration.title} waits for transactions that use the same tables")
            await asyncio.sleep(TRY_AGAIN_S)


class _OtherMigrator(Exception):
    """Another program is migrating the database just now."""


async def _run_one(connection: Connection, migration: Migration) -> bool:
    async with _transaction(connection):
        locked = await run(connection, [_plain("limit_migration"), _plain("try_lock_schema")])
        if not locked["try_lock_schema"][0][0]:
            raise _OtherMigrator
        if (await _schema(connection)).version >= migration.version:
            return False
        await run(connection, [Statement("limit_lock_wait", {"wait_ms": LOCK_WAIT_MS})])
        if migration.raises_floor:
            await run(connection, [_plain("lock_floor")])
            refuse_harm(migration, await _running(connection))
        await connection.execute(migration.sql.encode())
        await run(connection, [*migration_records(migration), COMMIT])
    return True


@asynccontextmanager
async def _transaction(connection: Connection) -> AsyncIterator[None]:
    """Begins a transaction, and rolls it back if the block ends before it is committed."""
    await run(connection, [BEGIN])
    try:
        yield
    finally:
        if not connection.closed:
            await connection.rollback()


@asynccontextmanager
async def _progress(migration: Migration, tell: Tell) -> AsyncIterator[None]:
    async def repeat() -> None:
        began_s = time.monotonic()
        while True:
            await asyncio.sleep(PROGRESS_S)
            tell(f"{migration.title} has been running for {time.monotonic() - began_s:.0f} s")

    task = asyncio.create_task(repeat(), name="progress of a migration")
    try:
        yield
    finally:
        task.cancel()


async def _schema(connection: Connection) -> Schema:
    if not await _value(connection, "has_schema"):
        return Schema()
    version = await _value(connection, "schema_version")
    if version < FLOOR_SINCE:
        return Schema(version=version, floor=version)
    ((version, program, floor),) = (await run(connection, [_plain("schema_state")]))["schema_state"]
    return Schema(version=version, floor=floor, program=program or "")


async def _running(connection: Connection) -> list[RunningNode]:
    found = await run(connection, [Statement("running_nodes", {"within_s": int(RUNNING_S)})])
    return [
        RunningNode(name=name, host=host, pid=pid, program=program, schema=schema, seen_s=seen_s)
        for name, host, pid, program, schema, seen_s in found["running_nodes"]
    ]


async def continue_journal(connection: Connection) -> None:
    """Makes sure that new entries of the journal sort after all old ones.

    After a dump is restored into a new server, that server's transaction numbers are lower than
    those in the journal. So an offset is added to new ones. A restore may happen while nodes run,
    so every new connection checks this.
    """
    if await _value(connection, "journal_lag") < 0:
        return
    await run(connection, [BEGIN, _plain("lock_journal")])
    lag = await _value(connection, "journal_lag")
    shift: list[Statement] = []
    if lag >= 0:  # Another node may have shifted it already.
        offset = await _value(connection, "journal_offset")
        shift = [Statement("shift_journal", {"offset": offset + lag + 1})]
    await run(connection, [*shift, COMMIT])


async def _value(connection: Connection, name: str) -> int:
    results = await run(connection, [_plain(name)])
    return int(results[name][0][0])


def _plain(name: str) -> Statement:
    return Statement(name, {})
