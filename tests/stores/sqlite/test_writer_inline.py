"""Who commits: the event loop for one who is alone on a quick disk, and else the thread."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from fairwarning.core.decide import Change
from fairwarning.core.instants import Instant
from fairwarning.core.model import Scope, ScopeId
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Moment, Signal, StoreDown
from fairwarning.stores.sqlite import SqliteStore, connection, writer
from fairwarning.stores.sqlite.writer import QUICK_COMMITS_NEEDED, QUICK_S, InlineCommits
from tests.stores.fleet import ME, declare, vm, web
from tests.stores.steps import changing

HERE = threading.get_ident


def steady() -> InlineCommits:
    found = InlineCommits()
    for _ in range(QUICK_COMMITS_NEEDED):
        assert not found.allows
        found.record(QUICK_S, alone=True)
    assert found.allows
    return found


async def test_a_store_that_is_opened_again_has_to_show_that_its_disk_is_quick(
    tmp_path: Path,
) -> None:
    found = steady()
    store = SqliteStore(tmp_path / "store.db", VirtualClock(), found)
    await store.open()
    assert not found.allows
    await store.close()


def test_after_a_slow_commit_it_takes_a_row_of_quick_ones_again() -> None:
    found = steady()
    found.record(QUICK_S + 0.001, alone=True)
    for _ in range(QUICK_COMMITS_NEEDED):
        assert not found.allows
        found.record(QUICK_S, alone=True)
    assert found.allows


def test_what_was_not_written_says_nothing_about_the_disk() -> None:
    found = InlineCommits()
    for _ in range(QUICK_COMMITS_NEEDED + 1):
        found.record(0, alone=True)
    assert not found.allows


def test_so_it_does_after_one_with_company() -> None:
    found = steady()
    found.record(0, alone=False)
    assert not found.allows


class Noting:
    """A step that notes the thread that it runs in."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def __call__(self, scope: Scope, moment: Moment) -> Change:
        self.threads.append(HERE())
        return changing(scope, moment)


async def open_store(
    tmp_path: Path, clock: VirtualClock, inline_commits: InlineCommits
) -> tuple[SqliteStore, ScopeId]:
    store = SqliteStore(tmp_path / "store.db", clock, inline_commits)
    await store.open()
    return store, await declare(store, web(), vm("other"))


async def threads_of_one_alone(tmp_path: Path, clock: VirtualClock) -> list[int]:
    store, id = await open_store(tmp_path, clock, InlineCommits())
    step = Noting()
    for _ in range(QUICK_COMMITS_NEEDED + 3):
        await store.transact(id, step, by=ME)
    assert (await store.read(id)).revision >= QUICK_COMMITS_NEEDED + 3
    await store.close()
    return step.threads


async def test_one_who_is_alone_on_a_quick_disk_changes_threads_no_more(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUICK_S", 60.0)
    threads = await threads_of_one_alone(tmp_path, clock)
    assert threads[0] != HERE()
    assert threads[QUICK_COMMITS_NEEDED:] == [HERE()] * 3


async def test_on_a_slow_disk_every_commit_is_the_threads(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUICK_S", 0.0)
    assert HERE() not in await threads_of_one_alone(tmp_path, clock)


async def test_callers_who_come_together_are_left_to_the_thread(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There they share a commit, also in the rounds that follow."""
    monkeypatch.setattr(writer, "QUICK_S", 60.0)
    store, id = await open_store(tmp_path, clock, InlineCommits())
    for _ in range(QUICK_COMMITS_NEEDED):
        await store.transact(id, changing, by=ME)
    step = Noting()
    for _ in range(2 * QUICK_COMMITS_NEEDED):
        await asyncio.gather(*(store.transact(id, step, by=ME) for _ in range(5)))
    assert step.threads.count(HERE()) == 1, "the very first could not know"
    for _ in range(QUICK_COMMITS_NEEDED + 1):
        await store.transact(id, step, by=ME)
    assert step.threads[-1] == HERE(), "alone again"
    await store.close()


async def test_while_the_thread_is_at_work_nobody_commits_here(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """They would be in each other's transaction."""
    store, id = await open_store(tmp_path, clock, InlineCommits(after=0))
    await store.transact(id, changing, by=ME)
    loop, inside, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> tuple[None, tuple[Signal, ...]]:
        loop.call_soon_threadsafe(inside.set)
        go_on.wait()
        return None, ()

    large = asyncio.create_task(store._writer.submit(work))
    await inside.wait()
    step = Noting()
    small = asyncio.create_task(store.transact(id, step, by=ME))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(large, small)
    assert HERE() not in step.threads
    await store.close()


async def test_between_the_commits_of_one_all_others_have_their_turn(
    tmp_path: Path, clock: VirtualClock
) -> None:
    store, id = await open_store(tmp_path, clock, InlineCommits(after=0))
    step, turns = Noting(), 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    polling = asyncio.create_task(other())
    for _ in range(20):
        await store.transact(id, step, by=ME)
    polling.cancel()
    assert step.threads == [HERE()] * 20
    assert turns >= 19
    await store.close()


async def test_a_foreign_lock_is_waited_for_on_the_thread(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_S_MAX", 600.0)
    store, id = await open_store(tmp_path, clock, InlineCommits(after=0))
    step = Noting()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        work = asyncio.create_task(store.transact(id, step, by=ME))
        await asyncio.sleep(0)
        foreign.execute("ROLLBACK")
        await work
    assert len(step.threads) == 1
    assert step.threads != [HERE()]
    await store.close()


async def test_what_was_begun_here_and_failed_is_not_done_again(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can know whether a commit that failed will be found on the disk.

    What comes next is left to the thread, which may wait for a disk that is in trouble.
    """
    monkeypatch.setattr(writer, "QUICK_S", 60.0)
    store, id = await open_store(tmp_path, clock, InlineCommits())
    for _ in range(QUICK_COMMITS_NEEDED):
        await store.transact(id, changing, by=ME)
    threads: list[int] = []

    def broken(scope: Scope, moment: Moment) -> Change:
        threads.append(HERE())
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(StoreDown):
        await store.transact(id, broken, by=ME)
    assert threads == [HERE()]
    step = Noting()
    for _ in range(2):
        await store.transact(id, step, by=ME)
    assert HERE() not in step.threads
    await store.close()


class NotingClock(VirtualClock):
    """Asked the time in the middle of a transaction, it notes who asks."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def now(self) -> Instant:
        self.threads.append(HERE())
        return super().now()


async def test_what_may_be_large_is_left_to_the_thread(tmp_path: Path) -> None:
    clock = NotingClock()
    store, id = await open_store(tmp_path, clock, InlineCommits(after=0))
    await store.transact(id, changing, by=ME)
    clock.threads.clear()
    await store.create([vm("new")], by=ME)
    assert HERE() not in clock.threads
    await store.close()
