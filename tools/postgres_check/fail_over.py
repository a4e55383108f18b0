"""Servers that know two hosts of PostgreSQL, through a switchover and a fail-over."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.postgres import PostgresServer
from tools.postgres_check.nodes import ServedNode, free_port, served, visible_s, wait_until
from tools.postgres_check.pgbouncer import Pooler

_IS_STREAMING = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"


def check_fail_over() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="fw-failover-") as folder, _pair() as pair:
        primary, standby = pair
        database = primary.create_database()
        # The standby comes first, and is left out.
        hosts = ",".join(f"127.0.0.1:{_port(each)}" for each in (standby, primary))
        url = f"postgresql://postgres@{hosts}/{database}"
        with (
            served(Path(folder), "one", "--store", url) as one,
            served(Path(folder), "two", "--store", url) as two,
        ):
            visible_s(one, two, range(2))
            switched_s = _switch_over(primary, standby, one, "vm-2")
            visible_s(two, one, range(3, 5))
            failed_s = _fail_over(standby, primary, one, "vm-5")
            visible_s(two, one, range(6, 8))
        line = _check_standby_behind_a_pooler(primary, database, Path(folder))
    return [
        "two servers find the primary behind a standby in the list of hosts",
        f"after a switchover, changes are stored {switched_s:.2f} s after the promotion",
        f"after the primary was killed, changes are stored {failed_s:.2f} s after the promotion",
        line,
    ]


@contextmanager
def _pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with ExitStack() as stack:
        primary = _server()
        stack.callback(primary.remove)
        primary.start()
        standby = _server(copied_from=primary)
        stack.callback(standby.remove)
        standby.start()
        yield primary, standby


def _server(copied_from: PostgresServer | None = None) -> PostgresServer:
    return PostgresServer(
        copied_from=copied_from, listen_addresses="127.0.0.1", port=str(free_port())
    )


def _port(server: PostgresServer) -> str:
    return server.dsn().rpartition("port=")[2]


def _switch_over(old: PostgresServer, new: PostgresServer, node: ServedNode, vm: str) -> float:
    """The old primary goes on as a standby of the new one."""
    wait_until(lambda: old.execute(_IS_STREAMING) == [(1,)], "the standby streams")
    old.stop()
    assert node.schedule(vm) is None, "a change was stored without a primary"
    new.execute("SELECT pg_promote()")
    took_s = wait_until(lambda: node.schedule(vm), "changes are stored at the new primary")
    old.follow(new)
    old.start()
    wait_until(lambda: new.execute(_IS_STREAMING) == [(1,)], "the former primary streams")
    return took_s


def _fail_over(old: PostgresServer, new: PostgresServer, node: ServedNode, vm: str) -> float:
    """The old primary is killed, and nothing but the promotion happens."""
    lag = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
    wait_until(lambda: old.execute(lag) == [(1,)], "the standby has everything")
    old.kill()
    assert node.schedule(vm) is None, "a change was stored without a primary"
    new.execute("SELECT pg_promote()")
    return wait_until(lambda: node.schedule(vm), "changes are stored at the new primary")


def _check_standby_behind_a_pooler(primary: PostgresServer, database: str, folder: Path) -> str:
    """A pooler is led to a standby, which is promoted later. Its clients stay connected."""
    with ExitStack() as stack:
        standby = _server(copied_from=primary)
        stack.callback(standby.remove)
        standby.start()
        wait_until(lambda: primary.execute(_IS_STREAMING) == [(1,)], "the standby streams")
        pooler = Pooler(folder, primary.dsn(database))
        stack.enter_context(pooler.running())
        node = stack.enter_context(served(folder, "pooled", "--store", pooler.url))
        assert node.schedule("vm-8") is not None
        pooler.lead_to(standby.dsn(database))
        pooler.reload()
        wait_until(lambda: "0" in str(primary.execute(_others(database))), "the pool has moved")
        assert node.schedule("vm-9") is None, "a change was stored at a standby"
        standby.execute("SELECT pg_promote()")
        took_s = wait_until(lambda: node.schedule("vm-9"), "changes are stored again")
    return f"a standby behind PgBouncer is left, and used {took_s:.2f} s after its promotion"


def _others(database: str) -> str:
    return f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"  # noqa: S608
