"""A node that ends does not wait long for a database that is silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairwarning.stores.postgres import node_registry
from fairwarning.stores.postgres.database import Connection, Database, connect
from fairwarning.stores.postgres.node_registry import NodeRegistry
from fairwarning.stores.postgres.schema import continue_journal
from tests.support.patience import HANG_S


class SilentDatabase(Database):
    """A database that never gives a connection."""

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        await asyncio.Event().wait()
        yield await connect(self._conninfo, "limit_session")


async def test_a_silent_database_does_not_keep_a_node_from_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def note() -> None: ...

    registry = NodeRegistry(SilentDatabase("", 1, continue_journal), 1, "node-1")
    monkeypatch.setattr(node_registry, "CLOSE_S_MAX", 0.01)
    monkeypatch.setattr(registry, "note", note)
    await registry.open()
    async with asyncio.timeout(HANG_S):
        await registry.close()
