"""Connections through a pooler, to several hosts, and under the name of their node."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.postgres import PostgresStore, database
from fairwarning.stores.postgres.database import (
    BEGIN,
    COMMIT,
    QUERIES,
    Database,
    connect,
    conninfo_of,
    hosts_of,
    run,
)
from fairwarning.stores.postgres.schema import continue_journal
from fairwarning.stores.statements import Statement
from tests.stores.fleet import ME, declare, web, whole_journal
from tests.stores.nodes import nodes, stranger
from tests.stores.steps import changing


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the store believe that a pooler is between it and the server."""
    monkeypatch.setitem(QUERIES, "backend", b"SELECT 0, false")


def test_no_lock_outlives_its_transaction() -> None:
    """A pooler would keep it for ever, in a connection that nobody can name."""
    assert not [name for name, text in QUERIES.items() if b"advisory_lock(" in text]


async def test_a_direct_connection_has_its_limits_for_good(postgres_dsn: str) -> None:
    async with await connect(conninfo_of(postgres_dsn), "limit_session") as connection:
        assert not connection.is_pooled
        assert await _timeouts(postgres_dsn, connection) == ["30s", "30s", "30s"]


@pytest.mark.usefixtures("pooled")
async def test_a_pooled_connection_has_its_limits_in_each_transaction(postgres_dsn: str) -> None:
    async with await connect(conninfo_of(postgres_dsn), "limit_session") as connection:
        assert connection.is_pooled
        # The last one is asked outside of run, and so without limits.
        assert await _timeouts(postgres_dsn, connection) == ["30s", "30s", "0"]


@pytest.mark.usefixtures("pooled")
async def test_limits_do_not_keep_a_transaction_from_its_isolation_level(postgres_dsn: str) -> None:
    other_default = f"{postgres_dsn} options='-c default_transaction_isolation=serializable'"
    async with await connect(conninfo_of(other_default), "limit_session") as connection:
        await run(connection, [BEGIN])
        cursor = await connection.execute(b"SHOW transaction_isolation")
        assert await cursor.fetchall() == [("read committed",)]


async def _timeouts(dsn: str, connection: database.Connection) -> list[str]:
    """Returns the limit of a statement alone, within a transaction, and behind the store's back."""
    QUERIES["timeout"] = b"SHOW statement_timeout"
    ask = Statement("timeout", {})
    try:
        alone = (await run(connection, [ask]))["timeout"][0][0]
        await run(connection, [BEGIN])
        within = (await run(connection, [ask, COMMIT]))["timeout"][0][0]
    finally:
        del QUERIES["timeout"]
    cursor = await connection.execute(b"SHOW statement_timeout")
    return [alone, within, (await cursor.fetchall())[0][0]]


@pytest.mark.usefixtures("pooled")
async def test_a_store_behind_a_pooler_works(bare_postgres_dsn: str) -> None:
    async with nodes(bare_postgres_dsn, 2) as (one, two):
        id = await declare(one, web())
        assert (await two.transact(id, changing, by=ME)).scope.revision == 3
        assert len(await whole_journal(one, id)) == 3


@pytest.mark.usefixtures("pooled")
async def test_a_pooled_connection_is_replaced_after_a_while(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Database(conninfo_of(postgres_dsn), 1, continue_journal)
    async with pool.connection() as first:
        pass
    async with pool.connection() as again:
        assert again is first
    monkeypatch.setattr(database, "POOLED_S_MAX", -1)
    async with pool.connection() as later:
        assert later is not first
    await pool.close()


async def test_all_connections_to_a_server_that_is_no_primary_are_left(postgres_dsn: str) -> None:
    pool = Database(conninfo_of(postgres_dsn), 3, continue_journal)
    async with pool.connection() as other:
        async with pool.connection() as used, pool.connection() as free:
            await used.execute(b"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        # The one that was given back last is taken first.
        assert pool._free == [free, used]
        with pytest.raises(StoreDown, match="read-only"):
            await _write(pool)
    async with pool.connection() as new:
        assert new not in (used, other, free)
    assert used.closed
    assert other.closed
    assert free.closed
    await pool.close()


async def _write(pool: Database) -> None:
    async with pool.connection() as connection:
        await connection.execute(b"CREATE TABLE no (no int)")


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("dbname=d", [(None, None)]),
        ("host=a port=1", [("a", "1")]),
        ("host=a,b", [("a", None), ("b", None)]),
        ("host=a,b port=1", [("a", "1"), ("b", "1")]),
        ("postgresql://u@a:1,b:2/d", [("a", "1"), ("b", "2")]),
        ("postgresql:///d?host=/x,/y", [("/x", None), ("/y", None)]),
        # libpq itself says what is wrong with it.
        ("host=a,b,c port=1,2", [("a,b,c", "1,2")]),
    ],
)
def test_several_hosts(dsn: str, hosts: list[tuple[str | None, str | None]]) -> None:
    found = [conninfo_to_dict(each) for each in hosts_of(dsn)]
    assert [(each.get("host"), each.get("port")) for each in found] == hosts


async def test_a_host_that_is_not_there_is_passed_over(postgres_dsn: str) -> None:
    folder = str(conninfo_to_dict(postgres_dsn)["host"])
    several = conninfo_of(postgres_dsn.replace(folder, f"/nowhere,{folder}"))
    async with await connect(several, "limit_session") as connection:
        assert connection.info.host == folder
    assert database._last_primary[several] == hosts_of(several)[1], "it is tried first next time"
    both_wrong = postgres_dsn.replace(folder, "/nowhere,/nowhere-else")
    with pytest.raises(StoreDown, match="cannot be reached"):
        await PostgresStore(both_wrong).open()


async def test_the_last_primary_is_asked_first(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host before it may be so dead that each attempt lasts until the time limit."""
    folder = str(conninfo_to_dict(postgres_dsn)["host"])
    several = conninfo_of(postgres_dsn.replace(folder, f"/dead,{folder}"))
    asked: list[str] = []
    really_connect = database._connect_to

    async def connect_to(conninfo: str, limits: str) -> database.Connection:
        asked.append(str(conninfo_to_dict(conninfo)["host"]))
        return await really_connect(conninfo, limits)

    monkeypatch.setattr(database, "_connect_to", connect_to)
    for _ in range(2):
        async with await connect(several, "limit_session"):
            pass
    assert asked == ["/dead", folder, folder]


async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_lent(
    postgres_dsn: str,
) -> None:
    pool = Database(conninfo_of(postgres_dsn), 1, continue_journal)
    async with pool.connection() as first:
        pid = first.info.backend_pid
    async with stranger(postgres_dsn) as other:
        await other.execute("SELECT pg_terminate_backend(%s, 60000)", pid)
    async with pool.connection() as later:
        assert later is not first
        await later.execute(b"SELECT 1")
    await pool.close()


async def test_a_standby_is_passed_over(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUERIES, "backend", b"SELECT pg_backend_pid(), true")
    with pytest.raises(StoreDown, match="is the primary"):
        await PostgresStore(postgres_dsn).open()


async def test_the_server_shows_which_node_a_connection_is_of(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn, node="node-7")
    await store.open()
    async with stranger(postgres_dsn) as other:
        query = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = %s"
        names = await other.execute(query, conninfo_to_dict(postgres_dsn)["dbname"])
    assert ("fairwarning/node-7",) in names
    await store.close()
