"""Of a commit that failed nobody is told, and of one whose answer was lost nothing is claimed."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Fence, Signal, Store, StoreDown
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.writer import InlineCommits
from tests.stores.fleet import ME, declare, vm, web, whole_journal
from tests.stores.nodes import nodes, wait_for
from tests.stores.steps import busy_writer, changing
from tests.support.patience import HANG_S

WEB, OTHER = web().id, web("other").id
HALF_NEW = [vm("new", subscription="0"), web()]
"""The first of them is written before the second is refused: scopes are added in order of id."""
NOTE = Noted(subject="token:t", action="changed")


def heard_of(store: Store) -> list[Signal]:
    heard: list[Signal] = []
    store.listen(heard.append)
    return heard


def named(heard: list[Signal]) -> list[tuple[ScopeId, int | None]]:
    return [(each.scope_id, each.scope.revision if each.scope else None) for each in heard]


def refuse_commits(path: Path, where: str) -> None:
    """The statements of such a transaction all succeed, and then its COMMIT fails."""
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.executescript(
            "CREATE TABLE nowhere (id PRIMARY KEY);"
            "CREATE TABLE bad (id REFERENCES nowhere (id) DEFERRABLE INITIALLY DEFERRED);"
            f"CREATE TRIGGER refuse AFTER INSERT ON journal WHEN {where} "
            "BEGIN INSERT INTO bad VALUES (NEW.seq); END;"
        )


def allow_commits(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("DROP TRIGGER refuse")


@pytest.fixture(params=["on the thread", "in the loop"])
async def store(
    tmp_path: Path, clock: VirtualClock, request: pytest.FixtureRequest
) -> AsyncIterator[SqliteStore]:
    inline_commits = InlineCommits(after=0) if request.param == "in the loop" else InlineCommits()
    store = SqliteStore(tmp_path / "store.db", clock, inline_commits)
    await store.open()
    await declare(store, web(), web("other"))
    yield store
    await store.close()


Write = Callable[[SqliteStore], Any]
WRITES: list[Write] = [
    lambda store: store.transact(WEB, changing, by=ME),
    lambda store: store.create([vm("a"), vm("b")], by=ME),
    lambda store: store.keep("token", "t", "{}", note=NOTE, by=ME),
]


@pytest.mark.parametrize("write", WRITES, ids=["transact", "create", "keep"])
async def test_a_commit_that_fails_is_told_to_nobody(
    store: SqliteStore, tmp_path: Path, write: Write
) -> None:
    heard, before = heard_of(store), await whole_journal(store)
    refuse_commits(tmp_path / "store.db", "TRUE")
    with pytest.raises(StoreDown):
        await write(store)
    assert heard == []
    assert await whole_journal(store) == before
    allow_commits(tmp_path / "store.db")
    await write(store)
    assert heard


async def test_a_batch_whose_commit_fails_is_told_to_nobody(
    store: SqliteStore, tmp_path: Path
) -> None:
    """Not even of those in it that would have been stored alone."""
    refuse_commits(tmp_path / "store.db", f"NEW.scope_id = '{OTHER}'")
    async with busy_writer(store, WEB):
        heard = heard_of(store)
        batch = [
            asyncio.create_task(store.transact(WEB, changing, by=ME)),
            asyncio.create_task(store.transact(OTHER, changing, by=ME)),
            asyncio.create_task(store.keep("token", "t", "{}", note=NOTE, by=ME)),
        ]
        await asyncio.sleep(0)
    results = await asyncio.gather(*batch, return_exceptions=True)
    assert [type(each) for each in results] == [StoreDown] * 3
    assert heard == []
    assert [(await store.read(id)).revision for id in (WEB, OTHER)] == [2, 2]


async def test_of_a_batch_that_was_undone_each_is_told_once_and_only_if_it_was_stored(
    store: SqliteStore,
) -> None:
    """One of it is refused after it has written, so all are undone and run again, one by one."""
    async with busy_writer(store, WEB):
        heard = heard_of(store)
        batch = [
            asyncio.create_task(store.transact(WEB, changing, by=ME)),
            asyncio.create_task(store.transact(OTHER, changing, by=ME)),
            asyncio.create_task(store.create(HALF_NEW, by=ME)),
            asyncio.create_task(store.transact(WEB, changing, by=ME)),
        ]
        await asyncio.sleep(0)
    results = await asyncio.gather(*batch, return_exceptions=True)
    assert isinstance(results[2], Refused)
    assert named(heard) == [(WEB, 3), (OTHER, 3), (WEB, 4)]
    assert [each.scope for each in heard] == [
        each.scope for each in results if not isinstance(each, BaseException | None)
    ]


async def test_what_was_undone_and_then_failed_alone_is_told_to_nobody(
    store: SqliteStore, tmp_path: Path
) -> None:
    """The first run of it went well."""
    refuse_commits(tmp_path / "store.db", f"NEW.scope_id = '{OTHER}'")
    async with busy_writer(store, WEB):
        heard = heard_of(store)
        batch = [
            asyncio.create_task(store.transact(OTHER, changing, by=ME)),
            asyncio.create_task(store.create(HALF_NEW, by=ME)),
            asyncio.create_task(store.transact(WEB, changing, by=ME)),
        ]
        await asyncio.sleep(0)
    results = await asyncio.gather(*batch, return_exceptions=True)
    assert isinstance(results[0], StoreDown)
    assert isinstance(results[1], Refused)
    assert named(heard) == [(WEB, 3)]
    assert [(await store.read(id)).revision for id in (WEB, OTHER)] == [3, 2]


async def test_a_fence_that_breaks_in_a_batch_is_told_to_nobody(store: SqliteStore) -> None:
    held = await store.keep("lock", "l", "mine", by=ME)
    async with busy_writer(store, WEB):
        heard = heard_of(store)
        batch = [
            asyncio.create_task(store.drop("lock", "l", by=ME)),
            asyncio.create_task(
                store.transact(OTHER, changing, by=ME, fences=[Fence(record=held)])
            ),
            asyncio.create_task(store.transact(WEB, changing, by=ME)),
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*batch, return_exceptions=True)
    assert named(heard) == [(WEB, 3)]


@pytest.mark.parametrize("where", ["thread", "loop"])
def test_a_disk_that_fails_at_the_commit(tmp_path: Path, where: str) -> None:
    """With a real error of the system, in a process whose files must not grow."""
    command = [
        sys.executable,
        "-m",
        "tests.stores.sqlite.full_disk_program",
        str(tmp_path / "store.db"),
        where,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert "told before 0, told after 1" in done.stdout


async def test_a_listener_that_breaks_undoes_nothing(clock: VirtualClock) -> None:
    """The reference store must keep the whole of what it was asked to, too."""
    store = MemoryStore(clock)

    def broken(signal: Signal) -> None:
        raise ValueError(signal.scope_id)

    seen: list[list[Scope]] = []
    store.listen(broken)
    store.listen(lambda _: seen.append([*store._scopes.values()]))
    await store.create([vm("a"), vm("b")], by=ME)
    assert len(await store.scope_ids(limit=9)) == 2
    assert [len(each) for each in seen] == [2, 2], "told when all of it was there"
    await store.keep("token", "t", "{}", note=NOTE, by=ME)
    assert len(seen) == 3


async def test_a_transaction_that_postgres_cuts_off_at_its_commit_is_told_to_nobody(
    postgres_dsn: str,
) -> None:
    """A trigger that waits for the COMMIT ends the very session that commits."""
    async with nodes(postgres_dsn, 2) as (one, two):
        mine, others = heard_of(one), heard_of(two)
        await declare(one, web())
        # Signals come in the order of their commits: behind this one, no older one is on its way.
        await one.create([vm("last")], by=ME)
        await wait_for(lambda: others and others[-1].scope_id == vm("last").id)
        mine.clear()
        others.clear()
        with psycopg.connect(postgres_dsn, autocommit=True) as other:
            other.execute(
                "CREATE FUNCTION cut_off() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
            )
            other.execute(
                "CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON journal "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut_off()"
            )
        for write in (
            one.transact(WEB, changing, by=ME),
            one.create([vm("new")], by=ME),
            one.keep("token", "t", "{}", note=NOTE, by=ME),
        ):
            with pytest.raises(StoreDown):
                await write
        assert (await two.read(WEB)).revision == 2
        with psycopg.connect(postgres_dsn, autocommit=True) as other:
            other.execute("DROP TRIGGER cut_off ON journal")
        await one.transact(WEB, changing, by=ME)
        await wait_for(lambda: others)
        assert named(mine) == [(WEB, 3)]
        assert named(others) == [(WEB, None)]


class Wire:
    """Between a store and its server; once it is armed, the answer to a COMMIT gets lost."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.loses_answers = False
        self.lost = asyncio.Event()
        self.open: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._server)
        commits: list[bytes] = []

        async def ask() -> None:
            while data := await reader.read(65_536):
                if self.loses_answers and data.rstrip(b"\0").endswith(b"COMMIT"):
                    commits.append(data)
                back.write(data)
            back.close()

        async def answer() -> None:
            while data := await there.read(65_536):
                if commits:
                    self.lost.set()
                    break
                writer.write(data)
            writer.close()
            back.close()

        try:
            await asyncio.gather(ask(), answer(), return_exceptions=True)
        finally:
            for each in (writer, back):
                each.close()
                await asyncio.gather(each.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def wired(dsn: str, folder: Path) -> AsyncIterator[tuple[Wire, str]]:
    parts = dict(part.split("=", 1) for part in dsn.split())
    wire = Wire(Path(parts["host"]) / ".s.PGSQL.5432")
    server = await asyncio.start_unix_server(wire.accept, folder / ".s.PGSQL.5432")
    try:
        yield wire, f"host={folder} user={parts['user']} dbname={parts['dbname']}"
    finally:
        server.close()
        # A client that failed or was cut off may never close its side.
        for each in wire.open:
            each.cancel()
        await asyncio.gather(*wire.open, return_exceptions=True)


async def test_a_commit_whose_answer_was_lost_claims_nothing(
    postgres_dsn: str, tmp_path: Path
) -> None:
    """It has happened; whoever made it does not know, and the next signal says all."""
    async with wired(postgres_dsn, tmp_path) as (wire, dsn):
        store = PostgresStore(dsn)
        await store.open()
        await declare(store, web())
        heard = heard_of(store)
        wire.loses_answers = True
        with pytest.raises(StoreDown, match="PostgreSQL"):
            await store.transact(WEB, changing, by=ME)
        assert wire.lost.is_set()
        assert heard == []
        wire.loses_answers = False
        assert (await store.read(WEB)).revision == 3
        receipt = await store.transact(WEB, changing, by=ME)
        assert named(heard) == [(WEB, 4)]
        assert heard[0].scope == receipt.scope
        await store.close()
