"""A line of the journal that this version cannot read stops nobody who reads the journal."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

from fairwarning.core.model import EventId
from fairwarning.core.transitions import Activated, Unknown, kind_of
from fairwarning.engine.change_feed import Feed
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore
from tests.stores.fleet import declare, submit, web
from tests.stores.test_history import reboot

EVENT = EventId("0000FFFF-0000-4000-8000-000000000001")
COLUMNS = "scope_id, revision, at_ms, actor_kind, actor_name, why, kind, event_id, body"
Append = Callable[[str, str], Awaitable[None]]


@pytest.fixture(params=["sqlite", "postgres"])
async def sql(request: pytest.FixtureRequest, tmp_path: Path, clock: VirtualClock):  # type: ignore[no-untyped-def]
    """A store, and a way to add a line about EVENT behind its back."""
    row = (web().id, 99, 0, "operator", "newer", "", "?", EVENT, "?")
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        store: Store = SqliteStore(path, clock)

        async def append(kind: str, body: str) -> None:
            with sqlite3.connect(path) as connection:
                marks = ", ".join("?" * len(row))
                values = (*row[:6], kind, EVENT, body)
                connection.execute(f"INSERT INTO journal ({COLUMNS}) VALUES ({marks})", values)
            connection.close()
    else:
        dsn = request.getfixturevalue("postgres_dsn")
        store = PostgresStore(dsn, clock)

        async def append(kind: str, body: str) -> None:
            async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
                marks = ", ".join(["%s"] * len(row))
                values = (*row[:6], kind, EVENT, body)
                query = f"INSERT INTO journal ({COLUMNS}) VALUES ({marks})"
                await connection.execute(query.encode(), values)

    await store.open()
    yield store, append
    await store.close()


async def test_the_feed_and_the_histories_come_past_it(sql: tuple[Store, Append]) -> None:
    store, append = sql
    id = await declare(store, web())
    await append("Exploded", f'{{"event_id": "{EVENT}"}}')
    await append("Activated", '{"at_ms": "yesterday"}')
    await submit(store, id, reboot("web-0"))
    changes = Feed(store).changes()
    found = [await anext(changes) for _ in range(5)]
    await changes.aclose()
    kinds = ["InstancesAdded", "Activated", "Exploded", "Activated", "Scheduled"]
    assert [kind_of(each.transition) for each in found] == kinds
    exploded, damaged = found[2].transition, found[3].transition
    assert isinstance(exploded, Unknown)
    assert (exploded.event_id, exploded.body) == (EVENT, f'{{"event_id": "{EVENT}"}}')
    assert isinstance(damaged, Unknown)
    assert isinstance(found[1].transition, Activated)
    whole = await store.history(limit=10)
    assert whole[::-1][: len(found)] == found
    told = await store.history(event_id=EVENT, limit=10)
    assert {kind_of(each.transition) for each in told} == {"Exploded", "Activated"}
