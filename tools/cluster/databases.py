"""The suite knows three databases: a plain pair, the pair behind PgBouncer, and Patroni."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import httpx
import psycopg

from tests.support.postgres import without_root
from tests.support.processes import clean_environment
from tools.cluster.network import database_address
from tools.cluster.postgres_pair import DATABASE, PROBED, PostgresPair, wait_until
from tools.debian_packages import program
from tools.patroni_cluster import PASSWORD, USER, PatroniCluster, patroni_cluster

_BOUNCER_PORT = 6432
_BOUNCER = """
[databases]
{database} = host=127.0.0.1 port={port} dbname={database} user=postgres

[pgbouncer]
listen_addr = *
listen_port = {listen}
unix_socket_dir = {home}
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 40
server_login_retry = 1
"""


class Database(Protocol):
    def url(self, node: int) -> str:
        """Returns the URL of the store for this node."""
        ...

    def write(self) -> None:
        """Commits a row of the suite. Raises psycopg.Error if the database takes no writes."""
        ...


class PlainPair(PostgresPair):
    """A pair that nodes reach by an address with both hosts."""

    def url(self, node: int) -> str:
        ports = sorted((self.primary.port, self.standby.port))
        hosts = ",".join(f"{database_address(node)}:{port}" for port in ports)
        return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def fail_over(self) -> None:
        super().fail_over()
        self.lead_clients()

    def lead_clients(self) -> None:
        """Nodes find the new primary by themselves."""


class BouncedPair(PlainPair):
    """A pair behind a PgBouncer in transaction mode, which is told of the new primary."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        self._home = folder / "pgbouncer"
        self._home.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        super().start()
        self.start_bouncer()

    def remove(self) -> None:
        self.stop_bouncer()
        super().remove()

    def url(self, node: int) -> str:
        return f"postgresql://postgres@{database_address(node)}:{_BOUNCER_PORT}/{DATABASE}"

    def lead_clients(self) -> None:
        self._configure()
        if self._process is not None:
            self._process.send_signal(1)

    def start_bouncer(self) -> None:
        self._configure()
        prefix, options = without_root(self._home)
        command = [*prefix, program("pgbouncer"), str(self._home / "pgbouncer.ini")]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command, stdout=log, stderr=log, env=clean_environment(), **options
            )
        wait_until(self._answers, "PgBouncer did not start")

    def stop_bouncer(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _configure(self) -> None:
        text = _BOUNCER.format(
            database=DATABASE, port=self.primary.port, listen=_BOUNCER_PORT, home=self._home
        )
        (self._home / "pgbouncer.ini").write_text(text)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url(1), connect_timeout=2) as connection:
                connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True


class Patroni:
    """Two members under Patroni, whose synchronous mode keeps what was committed."""

    def __init__(self, cluster: PatroniCluster) -> None:
        self.cluster = cluster
        with psycopg.connect(cluster.dsn, autocommit=True) as connection:
            for name in (DATABASE, PROBED):
                connection.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(self._probed, autocommit=True) as connection:
            connection.execute("CREATE TABLE rows (at timestamptz)")

    @property
    def _probed(self) -> str:
        return self.cluster.dsn.replace("dbname=postgres", f"dbname={PROBED}")

    def url(self, node: int) -> str:
        ports = (each.port for each in self.cluster.members.values())
        hosts = ",".join(f"{database_address(node)}:{port}" for port in ports)
        return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def write(self) -> None:
        with psycopg.connect(self._probed, autocommit=True) as connection:
            connection.execute("INSERT INTO rows VALUES (clock_timestamp())")

    def leader_and_other(self) -> tuple[str, str]:
        leader = self.cluster.leader()
        (other,) = set(self.cluster.members) - {leader}
        return leader, other

    def switch_over(self, leader: str, candidate: str) -> None:
        answer = httpx.post(
            f"{self.cluster.members[leader].url}/switchover",
            json={"leader": leader, "candidate": candidate},
            auth=(USER, PASSWORD),
            timeout=60,
            trust_env=False,
        )
        answer.raise_for_status()

    def wait_until_whole(self, leader: str) -> None:
        """Waits until the other member follows, and every commit waits for it."""
        self.cluster.wait(
            f"{leader} leads, and the other follows",
            lambda: (
                self.cluster.is_whole(leader)
                and any(each["role"] == "sync_standby" for each in self.cluster.shown().values())
            ),
        )


P = TypeVar("P", bound=PlainPair)


def plain(folder: Path, environment: Mapping[str, str]) -> AbstractContextManager[PlainPair]:
    return _started(PlainPair(folder, environment))


def bounced(folder: Path, environment: Mapping[str, str]) -> AbstractContextManager[BouncedPair]:
    return _started(BouncedPair(folder, environment))


@contextmanager
def _started(pair: P) -> Iterator[P]:
    try:
        pair.start()
        yield pair
    finally:
        pair.remove()


@contextmanager
def patroni(folder: Path, _: Mapping[str, str]) -> Iterator[Patroni]:
    with patroni_cluster(folder, listen="0.0.0.0", is_synchronous=True) as cluster:  # noqa: S104
        database = Patroni(cluster)
        database.wait_until_whole("db-0")
        yield database
