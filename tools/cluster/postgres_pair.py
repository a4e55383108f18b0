"""A pair is two PostgreSQL servers: a primary, and a standby that every commit waits for."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.support.postgres import bin_folder, without_root
from tools.cluster.small_disk import SmallDisk
from tools.debian_packages import program

DATABASE = "fairwarning"
PROBED = "probe"
"""A database beside ours, where the suite tries whether writes are taken."""
PATIENCE_S = 90.0  # It only ends a hang; the machine may be busy.
_PORTS = (5432, 5433)
_DISK_MEGABYTES = 400  # Room for a database with its log, and soon filled up.
_SETTINGS = {
    "listen_addresses": "*",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "48MB",
    "min_wal_size": "8MB",
    # A standby that was away for a while must find what it missed.
    "wal_keep_size": "96MB",
    "wal_sender_timeout": "5s",
    "wal_receiver_timeout": "5s",
    "hot_standby": "on",
}


class NotInTime(Exception):
    """Something of the suite itself took too long, or a program of it did not start."""


class Member:
    """One of the two servers."""

    def __init__(self, name: str, port: int, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.port = port
        self.disk = SmallDisk(folder / name, _DISK_MEGABYTES)
        self._data = self.disk.path / "data"
        self._log = folder / f"{name}.log"
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._prefix, self._options = without_root(self.disk.path)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def dsn(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database} connect_timeout=2"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self) -> None:
        """Makes a new database cluster on the disk."""
        self._run(
            "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
            "--wal-segsize=1",
        )  # fmt: skip

    def copy(self, primary: "Member") -> None:
        """Makes this the standby of the primary."""
        shutil.rmtree(self._data, ignore_errors=True)
        self._run(
            "pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres",
            "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        # It must not wait for a standby as soon as it is made the primary.
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write("synchronous_standby_names = ''\n")

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        # Set here and not before `unshare`, for which the clock does not matter.
        environment = [f"{name}={value}" for name, value in self._environment.items()]
        command = [*self._prefix, program("env"), *environment, str(bin_folder() / "postgres")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*command, "-D", str(self._data), "-k", str(self.disk.path),
                 f"--port={self.port}", *settings],
                stdout=log, stderr=log, start_new_session=True, **self._options,
            )  # fmt: skip
        wait_until(self._answers, f"{self.name} did not start: {self._last_lines()}")

    def stop(self, number: signal.Signals) -> None:
        """Ends it: SIGINT is a fast shutdown, SIGQUIT an immediate one."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kills all its processes at once."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGSTOP)
        children = self.children()
        self._process.kill()
        for child in children:
            _signal(child, signal.SIGKILL)
        self._process.wait()
        wait_until(
            lambda: not any(Path(f"/proc/{child}").exists() for child in children),
            f"the processes of {self.name} outlive it",
        )

    def children(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def signal_wal_receiver(self, number: signal.Signals) -> None:
        """Sends a signal to the process that receives what the primary commits."""
        for child in self.children():
            if b"walreceiver" in _command_line(child):
                _signal(child, number)

    def _answers(self) -> bool:
        if not self.is_running:
            raise NotInTime(f"{self.name} ended at once: {self._last_lines()}")
        try:
            self.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def _run(self, name: str, *arguments: str) -> None:
        command = [*self._prefix, str(bin_folder() / name), "-D", str(self._data), *arguments]
        done = subprocess.run(  # noqa: S603
            command, check=False, capture_output=True, **self._options
        )
        if done.returncode:
            raise NotInTime(f"{name} for {self.name}: {done.stderr.decode(errors='replace')}")

    def _last_lines(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return " / ".join(lines[-4:])


class PostgresPair:
    """The two servers, and which of them is the primary now."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """`environment` is added to that of the servers."""
        names = ("first", "second")
        self.primary, self.standby = (
            Member(name, port, folder, environment)
            for name, port in zip(names, _PORTS, strict=True)
        )

    def start(self) -> None:
        self.primary.create()
        self.primary.start()
        for name in (DATABASE, PROBED):
            self.primary.execute(f"CREATE DATABASE {name}")
        self.primary.execute("CREATE TABLE rows (at timestamptz)", PROBED)
        self.follow()

    def remove(self) -> None:
        for each in (self.primary, self.standby):
            each.kill()

    def fail_over(self) -> None:
        """Makes the standby the primary. The old primary must have ended."""
        self.primary, self.standby = self.standby, self.primary
        self.primary.execute("SELECT pg_promote(true, 60)")

    def follow(self) -> None:
        """Makes the other one the standby, and lets every commit wait for it."""
        self.standby.copy(self.primary)
        self.standby.start()
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        self.wait_for_standby()

    def wait_for_standby(self) -> None:
        state = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(lambda: bool(self.primary.execute(state)), "the standby does not follow")

    def write(self) -> None:
        """Commits a row. Raises psycopg.Error if that is not possible."""
        with psycopg.connect(self.primary.dsn(PROBED), autocommit=True) as connection:
            connection.execute("INSERT INTO rows VALUES (clock_timestamp())")


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > ends_s:
            raise NotInTime(complaint)
        time.sleep(0.02)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
