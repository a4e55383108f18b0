"""Lines of history outside all scopes wake those who follow, and nobody reads a scope for them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairwarning.core.commands import BeginAnew
from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.transitions import Noted
from fairwarning.engine import change_feed
from fairwarning.engine.change_feed import Feed
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Entry, Receipt, Store
from fairwarning.stores.memory import MemoryStore
from tests.stores.fleet import ME, declare, vm
from tests.stores.nodes import nodes, stranger
from tests.support.patience import HANG_S

NOTE = Noted(subject="token:t", action="created")


async def next_of(changes: AsyncIterator[Entry]) -> Entry:
    async with asyncio.timeout(HANG_S):
        return await anext(changes)


async def test_a_note_wakes_the_feed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed, "RECHECK_S", None)
    followed = Feed(store)
    store.listen(followed.on_signal)
    await declare(store, vm("v"))
    changes = followed.changes(await store.end())
    await store.keep("token", "t", "{}", note=NOTE, by=ME)
    assert (await next_of(changes)).transition == NOTE
    waiting = asyncio.create_task(next_of(changes))
    await asyncio.sleep(0)
    await store.drop("token", "t", note=NOTE, by=ME)
    assert (await waiting).transition == NOTE


async def test_a_note_wakes_the_feed_of_another_node(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "RECHECK_S", None)
    async with nodes(postgres_dsn, 2) as (writer, reader), stranger(postgres_dsn) as onlooker:
        followed = Feed(reader)
        reader.listen(followed.on_signal)
        changes = followed.changes(await reader.end())
        waiting = asyncio.create_task(next_of(changes))
        await onlooker.wait_until_looked()
        await writer.keep("token", "t", "{}", note=NOTE, by=ME)
        assert (await waiting).transition == NOTE


class Counting(MemoryStore):
    """As other nodes see a shared store: signals bring no scope."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.asked: list[ScopeId] = []

    async def read(self, scope_id: ScopeId) -> Scope:
        self.asked.append(scope_id)
        return await super().read(scope_id)


async def never(_: ScopeId, command: BeginAnew) -> Receipt:
    raise AssertionError(command)


async def test_views_read_nothing_for_a_note(clock: VirtualClock) -> None:
    store = Counting(clock)
    views = Views(store, never)
    store.listen(views.on_signal)
    await store.keep("token", "t", "{}", note=NOTE, by=ME)
    id = await declare(store, vm("v"))

    fresh = Views(store, never)
    for entry in await store.journal(limit=10):
        views.on_entry(entry)
        fresh.on_entry(entry)
    await asyncio.sleep(0)
    assert store.asked == [id]
    await views.close()
    await fresh.close()
