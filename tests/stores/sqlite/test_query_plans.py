"""No list of the embedded store reads more than its page: every step is a search in an index."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.connection import QUERIES, connect

SEARCHES = {
    "events": "events_by_created ((created_ms,id)<(?,?))",
    "events_of_kinds": "events_by_kind (type=? AND source=? AND phase=? AND (created_ms,id)<(?,?))",
    "events_of_scope": "events_by_scope (scope_id=? AND type=? AND source=? AND phase=? AND "
    "(created_ms,id)<(?,?))",
    "events_of_instance": "(instance=? AND scope_id=? AND type=? AND source=? AND phase=? AND "
    "(created_ms,event_id)<(?,?))",
    "history": "INTEGER PRIMARY KEY (rowid<?)",
    "history_of_scope": "journal_by_scope (scope_id=? AND seq<?)",
    "history_of_event": "journal_by_event (event_id=? AND seq<?)",
    "records": "PRIMARY KEY (kind=? AND key>? AND key<?)",
}
VALUES = {
    "types": "[]", "sources": "[]", "phases": "[]", "scope_id": "s", "instance": "i",
    "created_ms": 1, "id": "e", "event_id": "e", "limit": 1, "before": 1, "kind": "k",
    "after": "", "until": None,
}  # fmt: skip


def plan_of(connection: sqlite3.Connection, name: str) -> list[str]:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", VALUES)
    return [detail for *_, detail in rows]


@pytest.mark.parametrize("name", SEARCHES)
async def test_a_page_is_searched_and_not_scanned(
    sqlite: SqliteStore, tmp_path: Path, name: str
) -> None:
    with closing(connect(tmp_path / "store.db")) as connection:
        plan = plan_of(connection, name)
    assert any(SEARCHES[name] in step for step in plan), plan
    scanned = {step.split()[1] for step in plan if step.startswith("SCAN")}
    assert scanned <= {"types", "sources", "phases", "places", "CONSTANT"}, plan


async def test_counting_reads_nothing_but_an_index(sqlite: SqliteStore, tmp_path: Path) -> None:
    with closing(connect(tmp_path / "store.db")) as connection:
        plan = plan_of(connection, "count_events")
    assert plan == ["SCAN events USING COVERING INDEX events_by_kind"]
