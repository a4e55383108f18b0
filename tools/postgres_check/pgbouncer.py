"""Servers behind PgBouncer in transaction mode, with and without a direct connection."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from tests.support.postgres import PostgresServer, without_root
from tests.support.processes import running
from tools.debian_packages import program
from tools.postgres import url_of
from tools.postgres_check.nodes import ServedNode, free_port, served, visible_s, wait_until

_SETTINGS = """
[databases]
fairwarning = {target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
admin_users = admin
ignore_startup_parameters = extra_float_digits
"""
_ADVISORY = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


class Pooler:
    """A PgBouncer with so few connections of its own that clients must share them."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/fairwarning"
        self.lead_to(target)

    def lead_to(self, target: str) -> None:
        """Sets the server. A running pooler takes this over when it is told to reload."""
        settings = _SETTINGS.format(target=target, port=self._port)
        (self._folder / "pgbouncer.ini").write_text(settings)

    def reload(self) -> None:
        admin = f"host=127.0.0.1 port={self._port} user=admin dbname=pgbouncer"
        with psycopg.connect(admin, autocommit=True, cursor_factory=psycopg.ClientCursor) as to:
            to.execute("RELOAD")

    @contextmanager
    def running(self) -> Iterator[None]:
        prefix, options = without_root(self._folder)
        command = [*prefix, program("pgbouncer"), str(self._folder / "pgbouncer.ini")]
        with (
            (self._folder / "pgbouncer.log").open("a") as log,
            running(command, stdout=log, stderr=subprocess.STDOUT, **options),
        ):
            wait_until(self._answers, "PgBouncer answers")
            yield

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


def check_pgbouncer() -> list[str]:
    server = PostgresServer()
    try:
        server.start()
        with tempfile.TemporaryDirectory(prefix="fw-pgb-") as folder:
            return _check(server, Path(folder))
    finally:
        server.remove()


def _check(server: PostgresServer, folder: Path) -> list[str]:
    dsn = server.dsn(server.create_database())
    direct = url_of(dsn)
    pooler = Pooler(folder, dsn)
    with pooler.running():
        without = _visible(folder, range(10), "--store", pooler.url, is_heard=False)
        wait_until(lambda: server.execute(_ADVISORY) == [(0,)], "no advisory lock is left")
        with_direct = _visible(
            folder, range(10, 20), "--store", pooler.url, "--store-direct", direct, is_heard=True
        )
    lines = [_check_restart(pooler, folder)]
    plain = _visible(folder, range(20, 30), "--store", direct, is_heard=True)
    return [
        "two servers start through PgBouncer in transaction mode, and leave no lock in its pool",
        f"a change is visible on the other server after {without:.3f} s (median), with "
        f"--store-direct after {with_direct:.3f} s, without PgBouncer after {plain:.3f} s",
        *lines,
    ]


def _visible(folder: Path, numbers: range, *options: str, is_heard: bool) -> float:
    with served(folder, "one", *options) as one, served(folder, "two", *options) as two:
        for node in (one, two):
            _check_condition(node, is_heard=is_heard)
        return visible_s(one, two, numbers)


def _check_condition(node: ServedNode, *, is_heard: bool) -> None:
    """What the server says of LISTEN in its metrics, on /readyz and in its log."""
    metric = "fairwarning_store_signals_up"
    if is_heard:
        wait_until(lambda: node.metric(metric) == 1, "signals are heard")
        assert node.text("/readyz") == "ready\n", node.text("/readyz")
        return
    wait_until(lambda: "--store-direct" in node.text("/readyz"), "/readyz warns")
    assert node.metric(metric) == 0, "the metric says that signals are heard"
    wait_until(lambda: "give --store-direct" in node.log.read_text(), "the log warns")


def _check_restart(pooler: Pooler, folder: Path) -> str:
    with ExitStack() as stack:
        with pooler.running():
            node = stack.enter_context(served(folder, "again", "--store", pooler.url))
        assert node.schedule("vm-30") is None, "a change was stored while PgBouncer was away"
        stack.enter_context(pooler.running())
        took_s = wait_until(lambda: node.schedule("vm-30"), "changes are stored again")
    return f"after a restart of PgBouncer, changes are stored again within {took_s:.1f} s"
