"""A backup of a file in use has everything, a plain copy is noticed, and a restore puts it back."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairwarning.core.model import ENGINE
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.backup_file import BadBackup
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.backup import restore, save, verify


async def keep(store: SqliteStore, key: str) -> None:
    await store.keep("test", key, "{}", by=ENGINE)


async def keys(path: Path) -> list[str]:
    store = SqliteStore(path, VirtualClock())
    await store.open()
    try:
        return [each.key for each in await store.records("test", limit=10)]
    finally:
        await store.close()


async def test_a_backup_of_a_store_in_use_has_everything(
    sqlite: SqliteStore, tmp_path: Path
) -> None:
    await keep(sqlite, "a")
    target = tmp_path / "backup"
    assert save(sqlite._path, target).records == 1
    assert (target.stat().st_mode & 0o777) == 0o600
    with pytest.raises(BadBackup, match="--force"):
        save(sqlite._path, target)
    await keep(sqlite, "b")
    assert save(sqlite._path, target, replaces=True).records == 2
    assert restore(target, tmp_path / "new.db").warning == ""
    assert await keys(tmp_path / "new.db") == ["a", "b"]


async def test_a_plain_copy_of_a_store_in_use_is_noticed(
    sqlite: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await keep(sqlite, "a")
    copy = tmp_path / "copy.db"
    shutil.copy(sqlite._path, copy)
    assert "-wal" in verify(copy).warning
    with pytest.raises(BadBackup, match="--force"):
        restore(copy, tmp_path / "new.db")
    caplog.set_level(logging.WARNING)
    await keys(copy)
    assert "last changes may be missing" in caplog.text
    caplog.clear()
    await keys(copy)
    assert caplog.text == "", "after a clean stop all is well"


async def test_a_killed_server_leaves_a_file_that_is_whole(
    sqlite: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await keep(sqlite, "a")
    killed = tmp_path / "killed.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{sqlite._path}{suffix}", f"{killed}{suffix}")
    caplog.set_level(logging.WARNING)
    assert await keys(killed) == ["a"]
    assert caplog.text == ""


async def test_a_copy_that_was_cut_off_is_refused(sqlite: SqliteStore, tmp_path: Path) -> None:
    save(sqlite._path, tmp_path / "whole")
    cut = tmp_path / "cut.db"
    cut.write_bytes((tmp_path / "whole").read_bytes()[:-4096])
    with pytest.raises(BadBackup, match="cut off"):
        verify(cut)
    with pytest.raises(StoreDown, match="fairwarning restore"):
        await keys(cut)


async def test_a_store_in_use_is_not_overwritten(sqlite: SqliteStore, tmp_path: Path) -> None:
    save(sqlite._path, tmp_path / "backup")
    with pytest.raises(BadBackup, match="a server uses"):
        restore(tmp_path / "backup", sqlite._path, replaces=True)


def test_what_is_no_backup_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with pytest.raises(BadBackup, match="there is no store"):
        save(file, tmp_path / "backup")
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE mine (a)")
    with pytest.raises(BadBackup, match="no store of fairwarning"):
        verify(file)
    with closing(sqlite3.connect(file)) as newer:
        newer.execute("CREATE TABLE schema_version (version)")
        newer.execute("INSERT INTO schema_version VALUES (99)")
        newer.commit()
    with pytest.raises(BadBackup, match=r"schema version 99.*newer"):
        verify(file)
