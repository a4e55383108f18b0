"""The stores, by one name, so that the contract need not know them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.writer import InlineCommits


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["memory", "sqlite", "sqlite-in-loop", "postgres"])
def closed_store(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Store:
    match request.param:
        case "sqlite":
            return SqliteStore(tmp_path / "store.db", clock)
        case "sqlite-in-loop":
            return SqliteStore(tmp_path / "store.db", clock, InlineCommits(after=0))
        case "postgres":
            return PostgresStore(request.getfixturevalue("postgres_dsn"), clock)
        case _:
            return MemoryStore(clock)


@pytest.fixture
async def store(closed_store: Store) -> AsyncIterator[Store]:
    await closed_store.open()
    yield closed_store
    await closed_store.close()


@pytest.fixture
async def sqlite(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def postgres(postgres_dsn: str, clock: VirtualClock) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_dsn, clock)
    await store.open()
    yield store
    await store.close()
