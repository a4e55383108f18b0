"""Migrates the database to the newest schema, one node at a time."""

from collections.abc import Sequence

import psycopg

from fairwarning.stores.migrations import Migration, missing_of
from fairwarning.stores.postgres.database import BEGIN, COMMIT, Connection, connect, explained, run
from fairwarning.stores.statements import Statement


async def migrate(conninfo: str, migrations: Sequence[Migration]) -> None:
    """Runs the migrations that the database still needs.

    Raises SchemaTooNew if a newer version has migrated it, and StoreDown if a migration fails. Then
    the schema is as the last successful migration left it.
    """
    try:
        # When the connection closes, the lock is released, and what is not committed is undone.
        async with await connect(conninfo, "limit_schema_wait") as connection:
            await run(connection, [_plain("lock_schema")])
            where = f"database {connection.info.dbname!r}"
            for migration in missing_of(migrations, await _version(connection), where):
                await connection.execute(b"BEGIN")
                await connection.execute(migration.sql.encode())
                record = Statement("record_version", {"version": migration.version})
                await run(connection, [record, COMMIT])
            await continue_journal(connection)
    except psycopg.Error as error:
        raise explained(error) from error


async def _version(connection: Connection) -> int:
    has_schema = await _value(connection, "has_schema")
    return await _value(connection, "schema_version") if has_schema else 0


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
