"""The texts that go to PostgreSQL, and the wait for their results."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import AsyncClientCursor

from fairwarning.stores.postgres.database import QUERIES, Connection, connect, conninfo_of, run
from fairwarning.stores.postgres.scripts import rows_of, run_script, write_statement
from fairwarning.stores.statements import Statement, Value


@pytest.fixture
async def connection(postgres_dsn: str) -> AsyncIterator[Connection]:
    async with await connect(conninfo_of(postgres_dsn), "limit_session") as connection:
        yield connection


@pytest.mark.parametrize(
    "value",
    ["plain", "", "it's", "'; DROP TABLE scopes; --", "back\\slash\\'", "ünï💥", "%(no)s %s %%",
     "a\nb\r\tc", 0, -1, 2**62, True, False, None],
)  # fmt: skip
async def test_a_value_arrives_as_it_was(connection: Connection, value: Value) -> None:
    assert await _echo(connection, value) == value


async def test_a_value_is_quoted_as_by_psycopg(connection: Connection) -> None:
    text = b"SELECT %(one)s - %(two)s, '100%%', %(one)s"
    values: dict[str, Value] = {"one": -5, "two": -7}
    theirs = AsyncClientCursor(connection).mogrify(text, values)
    ours = write_statement(connection.pgconn, text, values).decode()
    assert ours.split() == theirs.split()


async def test_a_nul_is_stored_as_its_symbol(connection: Connection) -> None:
    assert await _echo(connection, "a\0b") == "a␀b"


async def test_a_percent_sign_stays_in_a_text_without_values(connection: Connection) -> None:
    assert write_statement(connection.pgconn, b"SELECT '50%%'", {}) == b"SELECT '50%%'"


async def test_a_message_larger_than_all_buffers_arrives(connection: Connection) -> None:
    large = "x" * 20_000_000
    assert await _echo(connection, large) == large


async def test_results_come_in_the_order_of_statements(connection: Connection) -> None:
    results = await run_script(connection, b"SELECT 1; SET jit = off; SELECT 2, 'b' WHERE false")
    assert [rows_of(connection.transformer, each) for each in results] == [[(1,)], [], []]


async def test_a_failed_statement_undoes_those_before(connection: Connection) -> None:
    script = b"CREATE TABLE gone (n int); SELECT 1 / 0; SELECT 2"
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
        await run_script(connection, script)
    assert await _echo(connection, "still usable") == "still usable"
    with pytest.raises(psycopg.errors.UndefinedTable):
        await run_script(connection, b"SELECT * FROM gone")


async def test_a_closed_connection_says_so(connection: Connection) -> None:
    await connection.close()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        await run_script(connection, b"SELECT 1")


async def test_the_server_stops_a_statement_whose_caller_has_gone(
    connection: Connection, postgres_dsn: str
) -> None:
    await run_script(connection, b"SET statement_timeout = 0")
    waiting = asyncio.create_task(run_script(connection, b"SELECT pg_sleep(3600)"))
    async with await connect(conninfo_of(postgres_dsn), "limit_session") as other:
        while not await _sleepers(other):
            pass
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert connection.closed
        while await _sleepers(other):
            pass


async def test_a_signal_is_not_forced_to_disk(connection: Connection) -> None:
    """What it tells of already is, and a fsync for each would slow down all commits."""
    QUERIES["durability"] = b"SHOW synchronous_commit"
    asked = Statement("durability", {})
    try:
        found = await run(connection, [Statement("notify", {"payload": "[]"}), asked])
        later = await run(connection, [asked])
    finally:
        del QUERIES["durability"]
    assert (found["durability"], later["durability"]) == ([("off",)], [("on",)])


async def _echo(connection: Connection, value: Value) -> object:
    script = write_statement(connection.pgconn, b"SELECT %(value)s", {"value": value})
    ((found,),) = rows_of(connection.transformer, (await run_script(connection, script))[0])
    return found


async def _sleepers(connection: Connection) -> int:
    text = (
        b"SELECT count(*) FROM pg_stat_activity "
        b"WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(3600)%'"
    )
    ((count,),) = rows_of(connection.transformer, (await run_script(connection, text))[0])
    assert isinstance(count, int)
    return count
