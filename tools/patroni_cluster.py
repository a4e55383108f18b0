"""A PostgreSQL under Patroni: two members and an etcd on loopback, and a client that writes."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.support.postgres import bin_folder, without_root
from tests.support.processes import clean_environment
from tools.debian_packages import program

USER, PASSWORD = "fairwarning", "not-a-secret"
MEMBERS = ("db-0", "db-1")
PATIENCE_S = 90.0
"""How long to wait for what takes Patroni some seconds, on a machine that may be busy."""
_MEMBER = """
scope: demo
name: {name}
etcd3: {{host: "127.0.0.1:{etcd}"}}
restapi:
  listen: 127.0.0.1:{rest}
  connect_address: 127.0.0.1:{rest}
  authentication: {{username: {user}, password: {password}}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 5
    synchronous_mode: {synchronous}
    postgresql: {{use_pg_rewind: true}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, no-sync]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "{listen}:{port}"
  connect_address: 127.0.0.1:{port}
  data_dir: {home}/{name}
  bin_dir: {programs}
  pgpass: {home}/{name}.pgpass
  authentication: {{superuser: {{username: postgres}}, replication: {{username: replicator}}}}
  parameters: {{unix_socket_directories: "{home}", fsync: "off", shared_buffers: 32MB}}
"""


class Member:
    def __init__(
        self, name: str, home: Path, etcd: int, *, listen: str, is_synchronous: bool
    ) -> None:
        self.name = name
        self._home = home
        self.port, rest = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{rest}"
        self._process: subprocess.Popen[bytes] | None = None
        settings = _MEMBER.format(
            name=name, home=home, etcd=etcd, rest=rest, port=self.port, programs=bin_folder(),
            user=USER, password=PASSWORD, listen=listen, synchronous=str(is_synchronous).lower(),
        )  # fmt: skip
        (home / f"{name}.yml").write_text(settings)

    def start(self) -> None:
        prefix, options = without_root(self._home)
        command = [*prefix, program("patroni"), str(self._home / f"{self.name}.yml")]
        with (self._home / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command, stdout=log, stderr=log, env=clean_environment(), **options
            )

    def stop(self) -> None:
        """Ends Patroni, which ends PostgreSQL."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.pull_the_plug()
            self._process = None

    def pull_the_plug(self) -> None:
        """Kills Patroni and PostgreSQL at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
        file = self._home / self.name / "postmaster.pid"
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
            file.unlink()

    def log(self) -> str:
        file = self._home / f"{self.name}.log"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return "\n".join(lines[-8:])


class PatroniCluster:
    def __init__(self, members: dict[str, Member]) -> None:
        self.members = members

    @property
    def dsn(self) -> str:
        """The address of both members. A client gets to the one that takes writes."""
        ports = ",".join(str(each.port) for each in self.members.values())
        hosts = ",".join("127.0.0.1" for _ in self.members)
        return (
            f"host={hosts} port={ports} user=postgres dbname=postgres connect_timeout=2 "
            "target_session_attrs=read-write"
        )

    def shown(self, asked: str = "db-0") -> dict[str, dict[str, Any]]:
        """Returns the members as a member shows them, by name. It is empty without an answer."""
        try:
            answer = httpx.get(f"{self.members[asked].url}/cluster", trust_env=False)
            return {each["name"]: each for each in answer.json()["members"]}
        except (httpx.HTTPError, ValueError):
            return {}

    def leader(self, asked: str = "db-0") -> str:
        found = self.shown(asked).items()
        return next((name for name, each in found if each["role"] == "leader"), "")

    def is_whole(self, leader: str) -> bool:
        shown = self.shown()
        return (
            {*shown} == {*MEMBERS}
            and shown[leader]["role"] == "leader"
            and all(each["state"] in ("running", "streaming") for each in shown.values())
            and len({each.get("timeline") for each in shown.values()}) == 1
        )

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        ends_s = time.monotonic() + PATIENCE_S
        while not condition():
            logs = "\n".join(f"{name}: {each.log()}" for name, each in self.members.items())
            assert time.monotonic() < ends_s, f"not in time: {what}; {self.shown()}\n{logs}"
            time.sleep(0.2)


@contextmanager
def patroni_cluster(
    home: Path, *, listen: str = "127.0.0.1", is_synchronous: bool = False
) -> Iterator[PatroniCluster]:
    """Runs the cluster, whose first leader is db-0, during the block.

    With `is_synchronous`, a commit waits for the other member while that one is there.
    """
    etcd = _free_port()
    members = {
        name: Member(name, home, etcd, listen=listen, is_synchronous=is_synchronous)
        for name in MEMBERS
    }
    cluster = PatroniCluster(members)
    with _etcd(home, etcd):
        try:
            members["db-0"].start()
            cluster.wait("db-0 is the leader", lambda: cluster.leader() == "db-0")
            members["db-1"].start()
            cluster.wait("db-1 follows db-0", lambda: cluster.is_whole("db-0"))
            yield cluster
        finally:
            for each in members.values():
                each.stop()


@contextmanager
def _etcd(home: Path, port: int) -> Iterator[None]:
    clients, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{_free_port()}"
    command = [
        program("etcd"), "--data-dir", str(home / "etcd"), "--listen-client-urls", clients,
        "--advertise-client-urls", clients, "--listen-peer-urls", peers,
        "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
    ]  # fmt: skip
    with (home / "etcd.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=clean_environment())  # noqa: S603
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Writer:
    """Inserts a row after the other, and goes on wherever writes are taken."""

    def __init__(self, cluster: PatroniCluster) -> None:
        self._dsn = cluster.dsn
        self.acknowledged: list[tuple[int, int]] = []
        """The number of each row, and the port of the server that took it."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> "Writer":
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE rows (number int PRIMARY KEY)")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def went_on(self, port: int) -> bool:
        return bool(self.acknowledged) and self.acknowledged[-1][1] == port

    def lost(self) -> set[int]:
        """Returns the rows that were acknowledged and are not there."""
        with psycopg.connect(self._dsn) as connection:
            found = {row[0] for row in connection.execute("SELECT number FROM rows")}
        return {number for number, _ in self.acknowledged} - found

    def _write(self) -> None:
        number = 0
        while not self._is_over.is_set():
            with (
                suppress(psycopg.Error),
                psycopg.connect(self._dsn, autocommit=True) as connection,
            ):
                while not self._is_over.wait(0.05):
                    number += 1
                    insert = "INSERT INTO rows VALUES (%s) RETURNING inet_server_port()"
                    row = connection.execute(insert, [number]).fetchone()
                    assert row is not None
                    self.acknowledged.append((number, row[0]))
            self._is_over.wait(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
