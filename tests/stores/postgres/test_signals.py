"""A node notices whether signals of other nodes arrive, and polls the journal if they do not."""

import logging

import pytest

from fairwarning.engine.protocols import Signal
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.postgres import PostgresStore, signals
from fairwarning.stores.postgres.commit_poll import CommitPoll
from fairwarning.stores.postgres.database import QUERIES, Database, conninfo_of
from fairwarning.stores.postgres.schema import continue_journal
from tests.stores.fleet import ME, declare, web
from tests.stores.nodes import nodes, stranger, wait_for
from tests.stores.steps import changing


async def test_signals_that_arrive_are_noticed(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 1) as (store,):
        await wait_for(lambda: store.condition.hears_signals)
        assert store.condition.warnings == ()


async def test_silence_is_noticed_and_the_journal_polled(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As through PgBouncer in transaction mode: LISTEN is accepted, and nothing comes."""
    monkeypatch.setitem(QUERIES, "listen", b"SELECT 1")
    monkeypatch.setattr(signals, "HEARD_S_MAX", 0.01)
    caplog.set_level(logging.WARNING)
    async with nodes(postgres_dsn, 2) as (one, two):
        await wait_for(lambda: two.condition.warnings)
        assert "--store-direct" in two.condition.warnings[0]
        assert not two.condition.hears_signals
        assert sum("--store-direct" in each.getMessage() for each in caplog.records) in (1, 2)
        heard: list[Signal] = []
        two.listen(heard.append)
        await wait_for(lambda: two._parts.commit_poll._from_xid is not None)
        id = await declare(one, web())
        await wait_for(lambda: heard)
        assert heard[-1].scope_id == id


async def test_a_direct_url_is_used_to_listen(
    postgres_dsn: str, bare_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "HEARD_S_MAX", 0.01)
    direct = PostgresStore(postgres_dsn, direct_dsn=postgres_dsn)
    elsewhere = PostgresStore(postgres_dsn, direct_dsn=bare_postgres_dsn)
    for store in (direct, elsewhere):
        await store.open()
    await wait_for(lambda: direct.condition.hears_signals)
    await wait_for(lambda: elsewhere.condition.warnings)
    for store in (direct, elsewhere):
        await store.close()


async def test_a_poll_tells_of_each_commit_once(postgres: PostgresStore, postgres_dsn: str) -> None:
    """Also if a long transaction holds back what is committed after it began."""
    id = await declare(postgres, web(), web("other"))
    listeners, told = Listeners(), list[str]()
    listeners.add(lambda signal: told.append(signal.scope_id))
    database = Database(conninfo_of(postgres_dsn), 1, continue_journal)
    poll = CommitPoll(database, listeners, postgres._parts.signals.is_deaf)
    await poll.look()
    await poll.look()
    assert told == [], "what was there before is known"
    async with stranger(postgres_dsn) as other:
        await other.execute("BEGIN")
        await other.execute("SELECT pg_current_xact_id()")
        for _ in range(2):
            await postgres.transact(id, changing, by=ME)
            await poll.look()
            await poll.look()
        assert told == [id, id]
        await postgres.transact(web("other").id, changing, by=ME)
    await poll.look()
    await poll.look()
    assert told == [id, id, web("other").id]
    await database.close()
