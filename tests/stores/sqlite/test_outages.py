"""Full, locked, damaged: the embedded store says so, keeps what it had, and comes back."""

import asyncio
import errno
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import AddInstances, Schedule
from fairwarning.core.model import EventType, Instance, InstanceName
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.sqlite import SqliteStore, connection
from fairwarning.stores.sqlite.writer import InlineCommits
from tests.stores.fleet import ME, deciding, declare, new_id, vm, web, whole_journal
from tests.stores.steps import busy_writer, changing
from tests.support.patience import HANG_S

NAME = InstanceName("web-0")


class Disk:
    """So many pages may the file have; SQLite takes the present size if it has more."""

    pages_max = 1_000_000

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connect = connection.connect

        def connect_with_quota(path: Path) -> sqlite3.Connection:
            opened = connect(path)
            opened.execute(f"PRAGMA max_page_count = {self.pages_max}")
            return opened

        monkeypatch.setattr(connection, "connect", connect_with_quota)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture(params=["on the thread", "in the loop"])
async def store(
    tmp_path: Path, clock: VirtualClock, disk: Disk, request: pytest.FixtureRequest
) -> AsyncIterator[SqliteStore]:
    inline_commits = InlineCommits(after=0) if request.param == "in the loop" else InlineCommits()
    store = SqliteStore(tmp_path / "store.db", clock, inline_commits)
    await store.open()
    yield store
    await store.close()


def crowd() -> tuple[Instance, ...]:
    """Too large for what room there is in the pages of a small fleet."""
    return tuple(Instance(name=InstanceName(f"i{n}"), handle="h" * 500) for n in range(90))


async def test_a_full_disk_is_an_outage_that_ends_by_itself(store: SqliteStore, disk: Disk) -> None:
    id = await declare(store, web())
    await store.close()
    disk.pages_max = 1
    await store.open()
    before = await store.read(id), await whole_journal(store)
    with pytest.raises(StoreDown, match="disk is full"):
        await store.transact(id, deciding(AddInstances(instances=crowd())), by=ME)
    assert (await store.read(id), await whole_journal(store)) == before
    disk.pages_max = 1_000_000
    receipt = await store.transact(id, deciding(AddInstances(instances=crowd())), by=ME)
    assert await store.read(id) == receipt.scope


async def test_a_batch_that_cannot_be_committed_fails_as_a_whole(
    store: SqliteStore, disk: Disk
) -> None:
    """Also who was refused: the refusal may rest on a change that is now undone."""
    id = await declare(store, web(), web("other"))
    await store.close()
    disk.pages_max = 1
    await store.open()
    before = [await store.read(scope.id) for scope in (web(), web("other"))]
    small = Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(NAME,))
    large = AddInstances(instances=crowd())
    async with busy_writer(store, id):
        batch = [
            asyncio.create_task(store.transact(id, deciding(small), by=ME)),
            asyncio.create_task(store.transact(id, deciding(small), by=ME)),
            asyncio.create_task(store.transact(web("other").id, deciding(large), by=ME)),
        ]
        await asyncio.sleep(0)
    results = await asyncio.gather(*batch, return_exceptions=True)
    assert [type(each) for each in results] == [StoreDown] * 3
    assert [await store.read(scope.id) for scope in (web(), web("other"))] == before
    disk.pages_max = 1_000_000
    await store.transact(id, deciding(small), by=ME)
    with pytest.raises(Refused):
        await store.transact(id, deciding(small), by=ME)


async def test_a_foreign_lock_is_an_outage_that_ends_with_it(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await declare(store, web())
    await store.close()
    monkeypatch.setattr(connection, "BUSY_S_MAX", 0.05)
    await store.open()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreDown, match="keeps it locked"):
            await store.transact(id, changing, by=ME)
        assert (await store.read(id)).revision == 2
        foreign.execute("ROLLBACK")
    assert (await store.transact(id, changing, by=ME)).scope.revision == 3


async def test_a_damaged_scope_harms_no_other(store: SqliteStore, tmp_path: Path) -> None:
    id = await declare(store, web(), vm("healthy"))
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as foreign:
        ((body,),) = foreign.execute("SELECT body FROM rosters WHERE scope_id = ?", [id])
        foreign.execute("UPDATE rosters SET body = '{' WHERE scope_id = ?", [id])
        for call in (store.read(id), store.transact(id, changing, by=ME)):
            with pytest.raises(StoreDown, match="damaged"):
                await call
        assert (await store.transact(vm("healthy").id, changing, by=ME)).scope.revision == 3
        foreign.execute("UPDATE rosters SET body = ? WHERE scope_id = ?", [body, id])
    assert (await store.transact(id, changing, by=ME)).scope.revision == 3


async def test_a_file_that_is_no_database_is_an_outage(store: SqliteStore, tmp_path: Path) -> None:
    await declare(store, web())
    await store.close()
    path = tmp_path / "store.db"
    whole = path.read_bytes()
    path.write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(StoreDown, match="restore it from a backup"):
        await store.open()
    path.write_bytes(whole)
    await store.open()
    assert await store.scope_ids(limit=10) == [web().id]


async def test_a_file_that_is_damaged_while_in_use(store: SqliteStore, tmp_path: Path) -> None:
    fleet = [replace(vm(f"v{n}"), roster=web(f"w{n}", 50).roster) for n in range(50)]
    await store.create(fleet, by=ME)
    await store.close()
    await store.open()
    path = tmp_path / "store.db"
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (len(whole) - 8192))
    with pytest.raises(StoreDown, match="cannot work on"):
        await store.read(fleet[25].id)
    with pytest.raises(StoreDown, match="cannot work on"):
        await store.transact(fleet[25].id, changing, by=ME)
    path.write_bytes(whole)
    assert (await store.transact(fleet[25].id, changing, by=ME)).scope.revision == 2


async def test_a_reader_that_has_failed_opens_the_file_anew(store: SqliteStore) -> None:
    id = await declare(store, web())

    def broken(connection: sqlite3.Connection) -> object:
        connection.close()
        return connection.execute("SELECT 1")

    with pytest.raises(StoreDown, match="cannot work on"):
        await store._reader.read(broken)
    assert (await store.read(id)).revision == 2


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "permissions")]
)
async def test_a_file_that_cannot_be_made(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreDown, match=advice):
        await SqliteStore(tmp_path / "store.db", clock).open()


async def test_a_directory_that_cannot_be_made(tmp_path: Path, clock: VirtualClock) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreDown, match="cannot work on"):
        await SqliteStore(tmp_path / "file" / "store.db", clock).open()


def test_a_disk_that_does_not_write(tmp_path: Path) -> None:
    """With a real error of the system, in a process whose files must not grow."""
    command = [
        sys.executable,
        "-m",
        "tests.stores.sqlite.full_disk_program",
        str(tmp_path / "store.db"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert "the disk does not read or write" in done.stdout


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_nothing_is_acknowledged_in_a_file_that_was_deleted(
    store: SqliteStore, tmp_path: Path, is_replaced: bool
) -> None:
    id = await declare(store, web())
    for _ in range(10):
        await store.transact(id, changing, by=ME)
    _take_away(tmp_path, is_replaced)
    for _ in range(3):
        with pytest.raises(StoreDown, match="deleted or replaced"):
            await store.transact(id, changing, by=ME)


def _take_away(folder: Path, is_replaced: bool) -> None:
    for each in folder.glob("store.db*"):
        content = each.read_bytes()
        each.unlink()
        if is_replaced:
            each.write_bytes(content)
