"""A database is recovered to a point in time as docs/recovery.md says, and nodes go on with it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.patience import HANG_S
from tests.support.postgres import PostgresServer
from tests.support.processes import Served, serving
from tools.postgres import url_of

PATH = "/vm/db/metadata/scheduledevents?api-version=2020-07-01"


@pytest.fixture
def archived(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that archives its WAL, as for a real recovery."""
    tmp_path.chmod(0o777)
    archive = tmp_path / "archive"
    archive.mkdir(mode=0o777)
    server = PostgresServer(
        archive_mode="on",
        archive_command=f"test ! -f {archive}/%f && cp %p {archive}/%f",
        full_page_writes="on",
    )
    server.start()
    yield server
    server.remove()


def schedule(node: Served, type: str) -> str:
    body = {"type": type, "targets": ["db"]}
    answer = httpx.post(f"{node.control}/api/v1/events", json=body, trust_env=False, timeout=HANG_S)
    id: str = answer.raise_for_status().json()["id"]
    return id


def poll(node: Served) -> httpx.Response:
    return httpx.get(
        node.metadata + PATH, headers={"Metadata": "true"}, trust_env=False, timeout=HANG_S
    )


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def is_archived(server: PostgresServer, segment: str) -> bool:
    ((last,),) = server.execute("SELECT last_archived_wal FROM pg_stat_archiver")
    return bool(last and last >= segment)


def test_nodes_go_on_with_a_database_of_an_earlier_time(
    archived: PostgresServer, tmp_path: Path
) -> None:
    store = url_of(archived.dsn(archived.create_database()))
    base, archive = tmp_path / "base", tmp_path / "archive"
    with serving("--store", store, "--no-azure", log=tmp_path / "log") as node:
        archived.base_backup(base)
        kept = schedule(node, "Reboot")
        ((target,),) = archived.execute("SELECT clock_timestamp()::text")
        lost = schedule(node, "Freeze")
        until(lambda: lost in poll(node).text, "the document lacks the second event")
        before = poll(node)
        assert kept in before.text
        ((segment,),) = archived.execute("SELECT pg_walfile_name(pg_switch_wal())")
        until(lambda: is_archived(archived, segment), "the WAL was not archived")

        archived.stop()
        archived.restore(
            base,
            restore_command=f"cp {archive}/%f %p",
            recovery_target_time=target,
            recovery_target_action="promote",
        )
        until(lambda: lost not in poll(node).text, "the node still shows what is lost")
        after = poll(node)
        assert kept in after.text
        assert after.headers["etag"] != before.headers["etag"]
        assert "stepped back" in (tmp_path / "log").read_text()
        # A node that starts now knows nothing of the lost time.
        with serving("--store", store, "--no-azure") as second:
            assert kept in poll(second).text
            assert lost not in poll(second).text
            new = schedule(second, "Redeploy")
            until(lambda: new in poll(node).text, "the first node misses a change of the second")
