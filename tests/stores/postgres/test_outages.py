"""The server goes away, hangs or breaks off: the store says so, and comes back by itself."""

import asyncio
import os
import signal
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from fairwarning.boot import make_engine
from fairwarning.core.commands import Activate
from fairwarning.core.decide import Change
from fairwarning.core.model import Scope
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Moment, Receipt, Signal, Store, StoreDown, call_limit_s
from fairwarning.stores.postgres import PostgresStore, database, signals
from fairwarning.stores.postgres.database import conninfo_of
from tests.stores.fleet import ME, declare, web, whole_journal
from tests.stores.nodes import nodes, stranger, wait_for
from tests.stores.steps import changing
from tests.support.patience import HANG_S
from tests.support.postgres import PostgresServer


async def every_call(store: Store) -> list[BaseException | object]:
    id = web().id
    return await asyncio.gather(
        store.read(id),
        store.transact(id, changing, by=ME),
        store.create([web("new")], by=ME),
        store.due(1),
        store.journal(limit=1),
        store.locate("10.0.0.1"),
        store.note_seen({id: SystemClock().now()}),
        return_exceptions=True,
    )


async def test_a_server_that_dies_and_returns(
    own_postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known at once: whoever waited for the limit of a call would wait here for ever."""
    monkeypatch.setattr(database, "CALL_S_MAX", None)
    server = own_postgres_server
    name = server.create_database()
    async with nodes(server.dsn(name), 2) as (one, two):
        id = await declare(one, web(), web("bell"))
        heard: list[Signal] = []
        two.listen(heard.append)
        for revision in (2, 3):
            server.kill()
            for result in await every_call(one):
                assert isinstance(result, StoreDown), result
                assert "PostgreSQL" in str(result)
            with pytest.raises(StoreDown, match="check that it runs"):
                await PostgresStore(server.dsn(name)).open()
            server.start()
            assert (await one.read(id)).revision == revision
            assert (await one.transact(id, changing, by=ME)).scope.revision == revision + 1
            assert (await two.read(id)).revision == revision + 1
            assert len(await whole_journal(two, id)) == revision + 1
            heard.clear()
            await wait_for(lambda: rings(one, heard))


async def rings(sender: Store, heard: list[Signal]) -> bool:
    """A signal may be lost while the listener is away, but not for ever."""
    await sender.transact(web("bell").id, changing, by=ME)
    return any(signal.scope_id == web("bell").id for signal in heard)


async def test_a_connection_that_breaks_inside_a_transaction(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())
    before = await postgres.read(id), await whole_journal(postgres)

    def cut_off(scope: Scope, moment: Moment) -> Change:
        with psycopg.connect(postgres_dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return changing(scope, moment)

    with pytest.raises(StoreDown, match="PostgreSQL"):
        await postgres.transact(id, cut_off, by=ME)
    assert (await postgres.read(id), await whole_journal(postgres)) == before
    assert (await postgres.transact(id, changing, by=ME)).scope.revision == 3


async def test_a_connection_that_has_failed_is_not_used_again(postgres_dsn: str) -> None:
    """It may lead to a server that no longer is what it was, such as a former primary."""

    async def sessions() -> set[int]:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'fairwarning'"
        return {pid for (pid,) in await other.execute(query)}

    async def one_has_gone() -> bool:
        return len(before - await sessions()) == 1

    async with (
        nodes(postgres_dsn, 1, connections_max=1) as (store,),
        stranger(postgres_dsn) as other,
    ):
        id = await declare(store, web())
        before = await sessions()
        await other.execute("ALTER TABLE rosters RENAME TO hidden")
        with pytest.raises(StoreDown, match="SQLSTATE 42P01"):
            await store.transact(id, changing, by=ME)
        await wait_for(one_has_gone)
        await other.execute("ALTER TABLE hidden RENAME TO rosters")
        assert (await store.transact(id, changing, by=ME)).scope.revision == 3


async def test_a_refusal_keeps_its_connection_and_holds_nothing(postgres_dsn: str) -> None:
    def refusing(scope: Scope, moment: Moment) -> Change:
        raise ValueError("no")

    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'fairwarning'"
    async with nodes(postgres_dsn, 1) as (store,), stranger(postgres_dsn) as other:
        id = await declare(store, web())
        before = set(await other.execute(query))
        with pytest.raises(ValueError, match="no"):
            await store.transact(id, refusing, by=ME)
        with pytest.raises(Refused):
            await store.create([web()], by=ME)
        assert (await store.transact(id, changing, by=ME)).scope.revision == 3
        assert before <= set(await other.execute(query))


async def test_a_refusal_is_one_even_if_the_server_goes_away(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())

    def cut_off(scope: Scope, moment: Moment) -> Change:
        with psycopg.connect(postgres_dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        raise ValueError("a bug of ours")

    with pytest.raises(ValueError, match="a bug of ours"):
        await postgres.transact(id, cut_off, by=ME)
    assert (await postgres.read(id)).revision == 2


async def test_a_wait_for_a_lock_has_an_end(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with nodes(postgres_dsn, 1) as (store,), stranger(postgres_dsn) as other:
        id = await declare(store, web())
        await other.enter(id)
        limits = database.QUERIES["limit_session"].replace(b"30s", b"200ms")
        monkeypatch.setitem(database.QUERIES, "limit_session", limits)
        async with nodes(postgres_dsn, 1) as (limited,):
            with pytest.raises(StoreDown, match="took too long"):
                await limited.transact(id, changing, by=ME)
        await other.leave()
        assert (await store.transact(id, changing, by=ME)).scope.revision == 3


async def test_a_node_that_falls_silent_loses_its_lock(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with nodes(postgres_dsn, 1) as (store,):
        id = await declare(store, web())
        limits = database.QUERIES["limit_session"].replace(
            b"idle_in_transaction_session_timeout', '30s'",
            b"idle_in_transaction_session_timeout', '200ms'",
        )
        monkeypatch.setitem(database.QUERIES, "limit_session", limits)

        def step(scope: Scope, moment: Moment) -> Change:
            with psycopg.connect(postgres_dsn, autocommit=True) as other:
                # Returns once the silent one has been thrown out.
                other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 1))", [scope.id])
            return changing(scope, moment)

        async with nodes(postgres_dsn, 1) as (silent,):
            with pytest.raises(StoreDown, match="PostgreSQL"):
                await silent.transact(id, step, by=ME)
        assert (await store.transact(id, changing, by=ME)).scope.revision == 3


class Deadlines:
    """The limits of the store's calls, which a test lets run out when it wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._running: list[asyncio.Timeout] = []
        self._timeout = asyncio.timeout
        monkeypatch.setattr(database, "CALL_S_MAX", 2 * HANG_S)
        monkeypatch.setattr(asyncio, "timeout", self._make)

    def _make(self, delay_s: float | None) -> asyncio.Timeout:
        made = self._timeout(delay_s)
        if delay_s == database.CALL_S_MAX:
            self._running.append(made)
        return made

    def run_out(self) -> None:
        self._running[-1].reschedule(0)


async def test_a_server_that_hangs_does_not_hang_us(
    postgres: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(postgres, web())
    deadlines = Deadlines(monkeypatch)
    async with stranger(postgres_dsn) as other:
        await other.enter(id)
        waiting = asyncio.create_task(postgres.transact(id, changing, by=ME))
        await other.wait_until_blocked()
        query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        ((pid,),) = await other.execute(query)
        os.kill(pid, signal.SIGSTOP)
        try:
            deadlines.run_out()
            with pytest.raises(StoreDown, match="did not answer"):
                await waiting
        finally:
            os.kill(pid, signal.SIGCONT)
        await other.leave()
    monkeypatch.undo()
    assert (await postgres.transact(id, changing, by=ME)).scope.revision >= 3


async def test_a_caller_with_a_limit_waits_no_longer_and_its_call_goes_on(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())
    engine = make_engine(postgres, SystemClock())
    committed: list[Receipt] = []
    engine.observe(lambda receipt, *_: committed.append(receipt))
    before = call_limit_s.set(0.01)
    async with stranger(postgres_dsn) as other:
        await other.enter(id)
        with pytest.raises(StoreDown, match=r"has not answered within 0\.01 s"):
            await postgres.transact(id, changing, by=ME)
        with pytest.raises(StoreDown, match=r"has not answered within 0\.01 s"):
            await engine.submit(id, Activate(), by=ME)
        call_limit_s.reset(before)
        await other.leave()
    await wait_for(lambda: committed)
    assert committed[0].scope.activated_ms is not None

    async def has_both() -> bool:
        return (await postgres.read(id)).revision == 3

    await wait_for(has_both)


async def test_to_create_scopes_has_no_limit(postgres: PostgresStore) -> None:
    """Thousands of them are one transaction, which takes its time on a server that works."""
    before = call_limit_s.set(0)
    await postgres.create([web()], by=ME)
    with pytest.raises(StoreDown, match="has not answered within 0 s"):
        await postgres.read(web().id)
    call_limit_s.reset(before)


@pytest.mark.parametrize(
    ("dsn", "advice"),
    [
        ("host=/nowhere dbname=x", "check that it runs"),
        ("not a dsn", "URL cannot be understood"),
    ],
)
async def test_a_server_that_is_not_there(dsn: str, advice: str) -> None:
    with pytest.raises(StoreDown, match=advice):
        await PostgresStore(dsn).open()


def test_what_the_url_says_comes_before_the_defaults() -> None:
    given = conninfo_to_dict(conninfo_of("host=h connect_timeout=9 application_name=mine"))
    assert (given["connect_timeout"], given["application_name"]) == ("9", "mine")
    assert given["keepalives_idle"] == "10", "what it does not say has a default"


class Broken:
    """A connection that breaks as soon as it is used."""

    async def close(self) -> None:
        """It has nothing open."""


async def test_the_pause_grows_only_while_there_is_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next outage begins with the shortest one again."""
    pauses: list[float] = []
    tries = iter([False, False, True, False, True])

    async def connect() -> Any:
        if not next(tries):
            raise psycopg.OperationalError("not yet")
        return Broken()

    async def use(connection: Any) -> None:
        raise psycopg.OperationalError("broken")

    async def pause(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 5:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", pause)
    with pytest.raises(asyncio.CancelledError):
        await signals._Renewed(connect).keep(use)
    least = signals.PAUSE_S_MIN
    assert pauses == [least, 2 * least, least, 2 * least, least]
