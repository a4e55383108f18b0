"""The embedded store: how it groups commits, and whom it keeps waiting."""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairwarning.core.commands import Tick
from fairwarning.core.model import ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Receipt, Signal, StoreDown
from fairwarning.stores.sqlite import SqliteStore, StoreInUse
from fairwarning.stores.sqlite.connection import connect
from fairwarning.stores.sqlite.writer import BATCH_JOBS_MAX, Job, Writer
from tests.stores.fleet import ME, deciding, declare, vm, web, whole_journal
from tests.stores.steps import busy_writer, changing


def submit_all(store: SqliteStore, ids: list[ScopeId]) -> "asyncio.Future[list[Receipt]]":
    return asyncio.gather(*(store.transact(id, changing, by=ME) for id in ids))


async def test_what_waits_is_committed_together(sqlite: SqliteStore) -> None:
    """When the first caller hears, the commits of all have been told."""
    fleet = [vm(f"v{number}") for number in range(50)]
    first = await declare(sqlite, *fleet)
    told: list[Signal] = []
    sqlite.listen(told.append)
    told_when_answered: list[int] = []

    async def caller(id: ScopeId) -> None:
        await sqlite.transact(id, changing, by=ME)
        told_when_answered.append(len(told))

    async with busy_writer(sqlite, first):
        callers = [asyncio.create_task(caller(scope.id)) for scope in fleet]
        await asyncio.sleep(0)
    await asyncio.gather(*callers)
    assert told_when_answered == [50] * 50


@pytest.mark.parametrize("others", [1, 2])
async def test_a_job_that_fails_after_it_wrote_leaves_no_trace_and_harms_no_other(
    sqlite: SqliteStore, others: int
) -> None:
    """The scope is written before the address that turns out to be taken."""
    id = await declare(sqlite, web(), vm("v", "10.0.0.1"))
    first = await sqlite.scope_ids(limit=10)
    taken, free = vm("taken", "10.0.0.1"), vm("free", "10.0.0.2")
    async with busy_writer(sqlite, id):
        jobs: list[asyncio.Task[Any]] = [
            asyncio.create_task(sqlite.transact(id, changing, by=ME)),
            asyncio.create_task(sqlite.create([taken], by=ME)),
        ]
        if others > 1:
            jobs.append(asyncio.create_task(sqlite.create([free], by=ME)))
        await asyncio.sleep(0)
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [isinstance(each, Refused) for each in results] == [False, True, False][: len(jobs)]
    assert (await sqlite.read(id)).revision == 3
    expected = [*first, free.id] if others > 1 else first
    assert await sqlite.scope_ids(limit=10) == sorted(expected)


async def test_a_batch_has_a_limit(sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    id = await declare(sqlite, web())
    sizes: list[int] = []
    deliver = Writer._deliver

    def recording(writer: Writer, batch: Sequence[Job[Any]]) -> None:
        sizes.append(len(batch))
        deliver(writer, batch)

    monkeypatch.setattr(Writer, "_deliver", recording)
    async with busy_writer(sqlite, id):
        callers = submit_all(sqlite, [id] * (BATCH_JOBS_MAX + 1))
        await asyncio.sleep(0)
    await callers
    assert sizes == [1, BATCH_JOBS_MAX, 1]


async def test_readers_do_not_wait_for_the_writer(sqlite: SqliteStore) -> None:
    id = await declare(sqlite, web(), vm("v", "10.0.0.1"))
    async with busy_writer(sqlite, id):
        assert (await sqlite.read(id)).revision == 2
        assert await sqlite.locate("10.0.0.1") is not None
        assert len(await whole_journal(sqlite)) == 4
        await sqlite.due(1)


async def test_the_clock_is_read_when_the_step_is_run(
    sqlite: SqliteStore, clock: VirtualClock
) -> None:
    id = await declare(sqlite, web())
    async with busy_writer(sqlite, id):
        waiting = asyncio.create_task(sqlite.transact(id, changing, by=ME))
        await asyncio.sleep(0)
        clock.step(1_000)
    assert (await waiting).at_ms == clock.now()


async def test_closing_finishes_what_was_asked(sqlite: SqliteStore, clock: VirtualClock) -> None:
    id = await declare(sqlite, web())
    callers = submit_all(sqlite, [id] * 50)
    await asyncio.sleep(0)
    await sqlite.close()
    assert len(await callers) == 50
    with pytest.raises(StoreDown, match="not open"):
        await sqlite.read(id)
    await sqlite.open()
    assert (await sqlite.read(id)).revision == 52


async def test_all_is_there_after_a_restart(sqlite: SqliteStore, tmp_path: Path) -> None:
    id = await declare(sqlite, web())
    await sqlite.transact(id, changing, by=ME)
    scope, entries = await sqlite.read(id), await whole_journal(sqlite)
    await sqlite.close()
    await sqlite.open()
    assert await sqlite.read(id) == scope
    assert await whole_journal(sqlite) == entries
    await sqlite.transact(id, changing, by=ME)
    assert len(await sqlite.journal(after=entries[-1].position, limit=10)) == 1


async def test_an_unchanged_deadline_costs_no_commit(sqlite: SqliteStore, tmp_path: Path) -> None:
    id = await declare(sqlite, web())
    await sqlite.transact(id, deciding(Tick()), by=ME)
    with closing(sqlite3.connect(tmp_path / "store.db")) as onlooker:
        version = onlooker.execute("PRAGMA data_version").fetchone()
        await sqlite.transact(id, deciding(Tick()), by=ME)
        with pytest.raises(Refused):
            await sqlite.transact(ScopeId("nobody"), changing, by=ME)
        assert onlooker.execute("PRAGMA data_version").fetchone() == version
        await sqlite.transact(id, changing, by=ME)
        assert onlooker.execute("PRAGMA data_version").fetchone() != version


async def test_a_listener_that_breaks_is_alone_with_it(
    sqlite: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(signal: Signal) -> None:
        raise ValueError("a bug")

    told: list[Signal] = []
    sqlite.listen(broken)
    sqlite.listen(told.append)
    await sqlite.create([web()], by=ME)
    assert len(told) == 1
    assert "a listener broke" in caplog.text


async def test_a_file_belongs_to_one_store(
    sqlite: SqliteStore, clock: VirtualClock, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    second = SqliteStore(path, clock)
    for _ in range(2):
        with pytest.raises(StoreInUse, match=r"process \d+ holds .*store\.db\.lock"):
            await second.open()
    await declare(sqlite, web())
    await sqlite.close()
    await second.open()
    assert await second.scope_ids(limit=10) == [web().id]
    await second.close()


async def test_the_process_that_has_the_file_is_named_and_no_earlier_one(
    tmp_path: Path, clock: VirtualClock
) -> None:
    path = tmp_path / "store.db"
    path.with_name("store.db.lock").write_text("99999999999999\n")
    store, second = SqliteStore(path, clock), SqliteStore(path, clock)
    await store.open()
    with pytest.raises(StoreInUse, match=f"process {os.getpid()} holds"):
        await second.open()
    await store.close()


async def test_the_file_is_given_up_when_all_is_written(
    sqlite: SqliteStore, clock: VirtualClock, tmp_path: Path
) -> None:
    id = await declare(sqlite, web())
    second = SqliteStore(tmp_path / "store.db", clock)
    async with busy_writer(sqlite, id):
        closing = asyncio.create_task(sqlite.close())
        await asyncio.sleep(0)
        with pytest.raises(StoreInUse):
            await second.open()
    await closing
    await second.open()
    await second.close()


async def test_nobody_else_may_read_the_file(sqlite: SqliteStore, tmp_path: Path) -> None:
    """It holds signing keys, and so does what SQLite puts beside it."""
    await declare(sqlite, web())
    modes = {each: os.stat(tmp_path / each).st_mode for each in ("store.db", "store.db-wal")}
    assert [name for name, mode in modes.items() if mode & 0o077] == []


async def test_what_is_read_together_is_of_one_instant(sqlite: SqliteStore, tmp_path: Path) -> None:
    id = await declare(sqlite, web())

    def query(connection: sqlite3.Connection) -> list[object]:
        look = "SELECT revision FROM scopes WHERE id = ?"
        found = [connection.execute(look, [id]).fetchone()]
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as foreign:
            foreign.execute("UPDATE scopes SET revision = 7 WHERE id = ?", [id])
        return [*found, connection.execute(look, [id]).fetchone()]

    assert await sqlite._reader.read(query) == [(2,), (2,)]
    assert (await sqlite.read(id)).revision == 7


async def test_directories_are_made(tmp_path: Path, clock: VirtualClock) -> None:
    store = SqliteStore(tmp_path / "a" / "b" / "store.db", clock)
    await store.open()
    await store.create([web()], by=ME)
    await store.close()


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "store.db")) as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5_000,
    }
