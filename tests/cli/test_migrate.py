"""`fairwarning migrate` shows its plan, carries it out, and refuses to harm a node."""

import asyncio
import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from fairwarning import __version__
from fairwarning.cli import migrate as command
from fairwarning.stores.migrations import Migration, load_migrations
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate as migrate_postgres
from fairwarning.stores.sqlite import schema as of_sqlite
from fairwarning.stores.sqlite.connection import FileLock
from tests.cli.conftest import Program
from tools.postgres import url_of

NEWEST = len(load_migrations("sqlite"))
EXPAND = "ALTER TABLE scopes ADD COLUMN added integer;"


@pytest.fixture
def program() -> Program:
    return Program("http://127.0.0.1:9")


@pytest.fixture
def older_file(tmp_path: Path) -> Path:
    path = tmp_path / "fw.db"
    of_sqlite.migrate(path, load_migrations("sqlite")[:2])
    return path


def schema_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
        return int(version)


def test_a_dry_run_shows_the_steps_and_changes_nothing(program: Program, older_file: Path) -> None:
    shown = program("migrate", "--store", f"sqlite:///{older_file}", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert f"has schema 2, and fairwarning {__version__} knows {NEWEST}." in shown.stdout
    assert "schema 3 (floor): expand; older nodes go on working" in shown.stdout
    assert schema_of(older_file) == 2


def test_a_file_is_copied_and_migrated(program: Program, older_file: Path) -> None:
    done = program("migrate", "--store", f"sqlite:///{older_file}")
    assert done.exit_code == 0, done.output
    assert f"The store has schema {NEWEST} now." in done.stdout
    assert schema_of(older_file) == NEWEST
    assert schema_of(older_file.with_name("fw.db.schema-2.backup")) == 2
    again = program("migrate", "--store", f"sqlite:///{older_file}")
    assert "There is nothing to do." in again.stdout


def test_no_copy_is_made_if_none_is_wanted(program: Program, older_file: Path) -> None:
    words = ("migrate", "--store", f"sqlite:///{older_file}", "--no-backup", "--json")
    done = json.loads(program(*words).stdout)
    assert (done["store"], done["schema"], done["newest"]) == ("sqlite", NEWEST, NEWEST)
    assert [step["schema"] for step in done["steps"]] == list(range(3, NEWEST + 1))
    assert all(step["seconds"] >= 0 for step in done["steps"])
    assert not list(older_file.parent.glob("*.backup"))


def test_a_file_that_a_server_uses_is_left_alone(program: Program, older_file: Path) -> None:
    lock = FileLock(older_file.with_name("fw.db.lock"))
    lock.acquire()
    try:
        refused = program("migrate", "--store", f"sqlite:///{older_file}")
    finally:
        lock.release()
    assert refused.exit_code == 1
    assert "process" in refused.stderr
    assert schema_of(older_file) == 2


def test_ctrl_c_ends_a_long_step_and_keeps_nothing_of_it(
    program: Program, older_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = (
        f"{EXPAND} WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) "
        "SELECT max(n) FROM numbers;"
    )
    slow = (*load_migrations("sqlite"), Migration(version=NEWEST + 1, sql=endless))
    monkeypatch.setattr(command, "load_migrations", lambda _: slow)
    monkeypatch.setattr(of_sqlite, "PROGRESS_S", 0.0)

    def press(line: str) -> None:
        if "has been running" in line:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(command, "_tell", press)
    ended = program("migrate", "--store", f"sqlite:///{older_file}")
    assert ended.exit_code == 130
    assert "stopped; the steps that were done stay" in ended.stderr
    assert schema_of(older_file) == NEWEST
    with closing(sqlite3.connect(older_file)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(scopes)")]
    assert "added" not in columns


@pytest.fixture
def database(bare_postgres_dsn: str) -> str:
    """The URL of a database of the version before the floor."""
    asyncio.run(migrate_postgres(conninfo_of(bare_postgres_dsn), load_migrations("postgres")[:2]))
    return url_of(bare_postgres_dsn)


def test_a_database_is_migrated(program: Program, database: str) -> None:
    shown = program("migrate", "--store", database, "--dry-run", "--json")
    assert json.loads(shown.stdout)["schema"] == 2
    done = program("migrate", "--store", database)
    assert done.exit_code == 0, done.output
    newest = len(load_migrations("postgres"))
    assert f"The store has schema {newest} now." in done.stdout


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_step_that_would_harm_a_node_is_refused_with_its_name(
    program: Program, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    known = load_migrations("postgres")
    newest = len(known)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(
            b"INSERT INTO nodes (name, host, pid, program, schema_version) "
            b"VALUES ('node-7', 'web1', 42, '0.9', %s)",
            [newest],
        )
    contract = Migration(version=newest + 1, sql="SELECT 1;", oldest_node=newest + 1)
    monkeypatch.setattr(command, "load_migrations", lambda _: (*known, contract))
    refused = program("migrate", "--store", url_of(postgres_dsn), *words)
    assert refused.exit_code == 1
    named = "node-7 (process 42 on web1, fairwarning 0.9)"
    assert f"{named} runs, and knows schema {newest}" in refused.stdout
    assert f"would harm nodes that don't know schema {newest + 1}" in refused.stderr
    assert f"seen in the last 30 s: {named}" in refused.stderr


def test_a_store_that_cannot_be_migrated_is_explained(program: Program, tmp_path: Path) -> None:
    assert "only these outlive a server" in program("migrate", "--store", "memory:").stderr
    (tmp_path / "text.db").write_text("this is no database, but a text of some length" * 9)
    told = program("migrate", "--store", f"sqlite:///{tmp_path}/text.db")
    assert told.exit_code == 1
    assert "it is no database" in told.stderr
    nowhere = f"postgresql://nobody@/db?host={os.fspath(tmp_path)}"
    assert "cannot work with PostgreSQL" in program("migrate", "--store", nowhere).stderr
