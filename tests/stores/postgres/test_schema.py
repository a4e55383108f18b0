"""Migrations while nodes run: which are done, which wait, and which writes they stop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest

from fairwarning.core.commands import Schedule
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, InstanceName
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.stores.migrations import RUNNING_S, Migration, WouldHarmNodes, load_migrations
from fairwarning.stores.postgres import PostgresStore, schema
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate, read_schema
from tests.stores.fleet import ME, declare, new_id, submit, web

KNOWN = load_migrations("postgres")
NEXT = len(KNOWN) + 1
EXPAND = Migration(version=NEXT, sql="ALTER TABLE scopes ADD COLUMN added integer;", name="add")
CONTRACT = Migration(
    version=NEXT, sql="ALTER TABLE scopes DROP COLUMN last_seen_ms;", name="drop", oldest_node=NEXT
)
REBOOT = Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(InstanceName("web-0"),))


@asynccontextmanager
async def node_of(dsn: str, name: str = "") -> AsyncIterator[PostgresStore]:
    store = PostgresStore(dsn, node=name)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def version_of(dsn: str) -> int:
    return (await read_schema(conninfo_of(dsn)))[0].version


async def execute(dsn: str, statement: bytes) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(statement)


async def test_a_node_is_registered_from_its_start_to_its_end(postgres_dsn: str) -> None:
    async with node_of(postgres_dsn, "node-1"), node_of(postgres_dsn):
        _, (node,) = await read_schema(conninfo_of(postgres_dsn))
        assert (node.name, node.schema) == ("node-1", len(KNOWN))
        assert node.seen_s < RUNNING_S
    assert (await read_schema(conninfo_of(postgres_dsn)))[1] == []


async def test_a_contract_waits_for_a_node_that_runs(postgres_dsn: str) -> None:
    conninfo = conninfo_of(postgres_dsn)
    async with node_of(postgres_dsn, "node-1") as store:
        with pytest.raises(WouldHarmNodes, match="in the last 30 s: node-1 "):
            await migrate(conninfo, (*KNOWN, CONTRACT))
        assert await version_of(postgres_dsn) == len(KNOWN)
        await declare(store, web())
    await migrate(conninfo, (*KNOWN, CONTRACT))
    assert await version_of(postgres_dsn) == NEXT


async def test_a_contract_does_not_wait_for_a_node_that_was_not_seen_for_long(
    postgres_dsn: str,
) -> None:
    async with node_of(postgres_dsn, "node-1"):
        await execute(postgres_dsn, b"UPDATE nodes SET seen_at = now() - interval '31 seconds'")
        await migrate(conninfo_of(postgres_dsn), (*KNOWN, CONTRACT))
        assert await version_of(postgres_dsn) == NEXT


async def test_an_expand_migration_waits_for_no_node(postgres_dsn: str) -> None:
    async with node_of(postgres_dsn, "node-1") as store:
        await migrate(conninfo_of(postgres_dsn), (*KNOWN, EXPAND))
        id = await declare(store, web())
        await submit(store, id, REBOOT)


async def test_a_new_node_starts_before_a_contract_that_has_to_wait(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with node_of(postgres_dsn, "node-1") as old:
        name = "fairwarning.stores.postgres.store.load_migrations"
        monkeypatch.setattr(name, lambda _: (*KNOWN, CONTRACT))
        async with node_of(postgres_dsn, "node-2") as new:
            assert await version_of(postgres_dsn) == len(KNOWN)
            await declare(new, web())
            await submit(old, web().id, REBOOT)
    assert f"schema {NEXT} (drop) would harm nodes" in caplog.text
    async with node_of(postgres_dsn, "node-3"):
        assert await version_of(postgres_dsn) == NEXT


async def test_a_new_node_does_not_start_if_what_it_needs_follows_a_contract_that_waits(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = Migration(version=NEXT + 1, sql="SELECT 1;")
    async with node_of(postgres_dsn, "node-1"):
        name = "fairwarning.stores.postgres.store.load_migrations"
        monkeypatch.setattr(name, lambda _: (*KNOWN, CONTRACT, needed))
        with pytest.raises(WouldHarmNodes, match="node-1"):
            await PostgresStore(postgres_dsn).open()


async def test_a_node_below_the_floor_reads_and_no_longer_writes(
    postgres_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with node_of(postgres_dsn, "node-1") as store:
        id = await declare(store, web())
        await execute(postgres_dsn, b"DELETE FROM nodes")  # As if it had been paused for long.
        record = await store.keep("kind", "key", "{}", by=ME)
        await migrate(conninfo_of(postgres_dsn), (*KNOWN, with_sql("SELECT 1;")))
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: declare(store, web("other")),
            lambda: submit(store, id, REBOOT),
            lambda: store.keep("kind", "key", "[]", by=ME),
            lambda: store.drop("kind", "key", by=ME),
            lambda: store.note_seen({id: Instant(1)}),
        ]
        for write in writes:
            with pytest.raises(SchemaTooNew, match=f"schema {NEXT} must be known to write"):
                await write()
        assert store._opened is not None
        assert store._opened.registry is not None
        for _ in range(2):
            with pytest.raises(SchemaTooNew, match=f"know schema {NEXT}"):
                await store._opened.registry.note()
        assert (await store.read(id)).revision == 2
        assert await store.record("kind", "key") == record
        assert await store.scope_ids(limit=9) == [id]
    assert caplog.text.count("this node no longer writes") == 1


def with_sql(sql: str) -> Migration:
    return Migration(version=NEXT, sql=sql, oldest_node=NEXT)


async def test_a_contract_waits_for_the_writes_that_are_under_way(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is paused between reading the floor and its commit still commits before it."""
    monkeypatch.setattr(schema, "TRY_AGAIN_S", 0.01)
    monkeypatch.setattr(schema, "LOCK_WAIT_MS", 10)
    told: list[str] = []
    waits = asyncio.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    writing = await psycopg.AsyncConnection.connect(postgres_dsn)
    async with writing:
        await writing.execute(b"SELECT check_writer(%s)", [NEXT - 1])
        contract = with_sql("SELECT 1;")
        migrating = asyncio.create_task(
            migrate(conninfo_of(postgres_dsn), (*KNOWN, contract), tell=tell)
        )
        waiting = asyncio.create_task(waits.wait())
        await asyncio.wait([migrating, waiting], return_when=asyncio.FIRST_COMPLETED)
        assert waits.is_set(), "it did not wait"
        assert "waits for transactions" in told[0]
        async with node_of(postgres_dsn) as other:
            await declare(other, web())  # It is not kept waiting for as long as the contract.
        assert not migrating.done()
        await writing.commit()
        await migrating
    assert await version_of(postgres_dsn) == NEXT


async def test_a_write_that_waits_behind_a_contract_is_refused(postgres_dsn: str) -> None:
    async with node_of(postgres_dsn) as store:
        id = await declare(store, web())
        async with await psycopg.AsyncConnection.connect(postgres_dsn) as contract:
            await contract.execute(b"LOCK TABLE schema_floor IN ACCESS EXCLUSIVE MODE")
            writing = asyncio.create_task(submit(store, id, REBOOT))
            await until_waiting(postgres_dsn)
            await contract.execute(b"UPDATE schema_floor SET version = %s", [NEXT])
            await contract.execute(b"ALTER TABLE scopes DROP COLUMN last_seen_ms")
            await contract.commit()
        with pytest.raises(SchemaTooNew):
            await writing


async def until_waiting(dsn: str) -> None:
    """Returns when a statement waits for a lock."""
    query = b"SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        while True:
            found = await (await connection.execute(query)).fetchone()
            if found is not None and found[0]:
                return
            await asyncio.sleep(0.01)


async def test_a_migration_gives_up_if_locks_are_never_free(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TRY_AGAIN_S", 0.01), ("LOCK_WAIT_MS", 10), ("TRY_S_MAX", 0.1)):
        monkeypatch.setattr(schema, name, value)
    async with await psycopg.AsyncConnection.connect(postgres_dsn) as other:
        await other.execute(b"LOCK TABLE scopes")
        with pytest.raises(StoreDown, match="a lock was not free in time"):
            await migrate(conninfo_of(postgres_dsn), (*KNOWN, EXPAND))
        await other.rollback()
        await other.execute(b"SELECT pg_advisory_xact_lock(7202177281)")
        with pytest.raises(StoreDown, match="another program has been migrating"):
            await migrate(conninfo_of(postgres_dsn), (*KNOWN, EXPAND))
    assert await version_of(postgres_dsn) == len(KNOWN)


async def test_migrators_at_once_run_each_migration_once(postgres_dsn: str) -> None:
    conninfo = conninfo_of(postgres_dsn)
    reports = await asyncio.gather(*(migrate(conninfo, (*KNOWN, EXPAND)) for _ in range(4)))
    assert sorted(len(report.seconds) for report in reports) == [0, 0, 0, 1]
    assert {report.after for report in reports} == {NEXT}


async def test_a_migrator_that_is_cancelled_leaves_nothing_behind(postgres_dsn: str) -> None:
    conninfo = conninfo_of(postgres_dsn)
    slow = Migration(version=NEXT, sql=f"{EXPAND.sql} SELECT pg_sleep(3600);")
    task = asyncio.create_task(migrate(conninfo, (*KNOWN, slow)))
    await until_asleep(postgres_dsn)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await migrate(conninfo, (*KNOWN, EXPAND))
    assert await version_of(postgres_dsn) == NEXT


async def until_asleep(dsn: str) -> None:
    """Returns when a session sleeps in pg_sleep."""
    query = b"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        while True:
            found = await (await connection.execute(query)).fetchone()
            if found is not None and found[0]:
                return
            await asyncio.sleep(0.01)


async def test_a_long_migration_tells_that_it_goes_on(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "PROGRESS_S", 0.01)
    told: list[str] = []
    slow = Migration(version=NEXT, sql="SELECT pg_sleep(0.2);", name="slow")
    await migrate(conninfo_of(postgres_dsn), (*KNOWN, slow), tell=told.append)
    assert told[0].startswith(f"schema {NEXT} (slow) has been running for")
