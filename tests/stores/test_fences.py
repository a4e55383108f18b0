"""Fences: a change is stored only while the records that it relies on are as they were read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import AddInstances, Schedule, Tick
from fairwarning.core.decide import Change
from fairwarning.core.model import EventType, Instance, InstanceName, Scope
from fairwarning.core.refusals import Refused
from fairwarning.core.transitions import Noted
from fairwarning.engine.protocols import (
    Fence,
    FenceBroken,
    Moment,
    Record,
    RecordChanged,
    Store,
)
from fairwarning.stores.sqlite import SqliteStore
from tests.stores.fleet import ME, deciding, declare, new_id, vm, web, whole_journal
from tests.stores.nodes import nodes, stranger
from tests.stores.steps import busy_writer, changing
from tests.support.patience import HANG_S

NOTE = Noted(subject="token:t", action="changed")


def fence(record: Record, then: str | None = None) -> Fence:
    return Fence(record=record, then=then)


async def transact(store: Store, *fences: Fence) -> None:
    await store.transact(web().id, changing, by=ME, fences=fences)


async def create(store: Store, *fences: Fence) -> None:
    await store.create([vm("new")], by=ME, fences=fences)


async def keep(store: Store, *fences: Fence) -> None:
    await store.keep("token", "t", "2", note=NOTE, by=ME, fences=fences)


async def drop(store: Store, *fences: Fence) -> None:
    await store.drop("token", "t", note=NOTE, by=ME, fences=fences)


WRITES: list[Callable[..., Awaitable[None]]] = [transact, create, keep, drop]


async def everything(store: Store) -> list[Any]:
    scopes = await store.scopes(limit=9)
    return [scopes, await store.records("token", limit=9), await whole_journal(store)]


async def prepared(store: Store) -> Record:
    await declare(store, web())
    await store.keep("token", "t", "1", by=ME)
    return await store.keep("lock", "l", "mine", by=ME)


async def test_behind_a_fence_that_holds_all_is_as_usual(store: Store) -> None:
    held = await prepared(store)
    for write in WRITES:
        before = await everything(store)
        await write(store, fence(held))
        assert await everything(store) != before
        assert await store.record("lock", "l") == held


async def test_a_fence_marks_its_record_in_the_same_commit(store: Store) -> None:
    held = await prepared(store)
    for number, write in enumerate(WRITES):
        await write(store, fence(held, f"mark {number}"))
        marked = replace(held, revision=held.revision + 1, body=f"mark {number}")
        assert await store.record("lock", "l") == marked
        held = marked


@pytest.mark.parametrize("how", ["changed", "removed", "taken anew", "as it was but later"])
async def test_behind_a_broken_fence_nothing_is_stored(store: Store, how: str) -> None:
    held = await prepared(store)
    if how in ("removed", "taken anew"):
        await store.drop("lock", "l", by=ME)
    if how != "removed":
        await store.keep("lock", "l", "mine" if how == "as it was but later" else "yours", by=ME)
    before = await everything(store), await store.record("lock", "l")
    for write in WRITES:
        for then in (None, "marked"):
            with pytest.raises(FenceBroken) as broken:
                await write(store, fence(held, then))
            assert broken.value.fence.record == held
    assert (await everything(store), await store.record("lock", "l")) == before


async def test_every_fence_must_hold_and_the_broken_one_is_named(store: Store) -> None:
    held = await prepared(store)
    gone = Record(kind="lock", key="other", revision=1, body="mine")
    before = await everything(store)
    for write in WRITES:
        for both in ([fence(held), fence(gone)], [fence(gone, "m"), fence(held, "m")]):
            with pytest.raises(FenceBroken) as broken:
                await write(store, *both)
            assert broken.value.fence.record == gone
    assert await everything(store) == before
    assert await store.record("lock", "l") == held
    other = await store.keep("lock", "other", "mine", by=ME)
    await transact(store, fence(held, "a"), fence(other, "b"))
    assert [each.body for each in await store.records("lock", limit=9)] == ["a", "b"]


async def test_what_is_refused_marks_nothing(store: Store) -> None:
    held = await prepared(store)
    marking = [fence(held, "marked")]
    event = Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(InstanceName("gone"),))
    with pytest.raises(Refused):
        await store.transact(web().id, deciding(event), by=ME, fences=marking)
    with pytest.raises(Refused):
        await store.create([web()], by=ME, fences=marking)
    await declare(store, vm("other", "10.0.0.1"))
    used = replace(event, targets=(InstanceName("other"),))
    await store.transact(vm("other").id, deciding(used), by=ME)
    for taken in (
        replace(event, targets=(InstanceName("web-0"),)),
        AddInstances(instances=(Instance(name=InstanceName("new"), addresses=("10.0.0.1",)),)),
    ):
        with pytest.raises(Refused):
            await store.transact(web().id, deciding(taken), by=ME, fences=marking)
    with pytest.raises(Refused):
        await store.create([vm("new", "10.0.0.1")], by=ME, fences=marking)
    with pytest.raises(RecordChanged):
        await store.keep("token", "t", "2", expected=7, by=ME, fences=marking)
    with pytest.raises(RecordChanged):
        await store.drop("token", "t", expected=7, by=ME, fences=marking)
    assert await store.record("lock", "l") == held


async def test_what_changes_nothing_marks_all_the_same(store: Store) -> None:
    """Whoever counts revisions must be able to rely on it."""
    held = await prepared(store)
    await store.transact(web().id, deciding(Tick()), by=ME, fences=[fence(held, "a")])
    first = await store.record("lock", "l")
    assert first is not None
    assert first.body == "a"
    assert not await store.drop("token", "none", note=NOTE, by=ME, fences=[fence(first, "b")])
    second = await store.record("lock", "l")
    assert second is not None
    assert (second.body, second.revision) == ("b", held.revision + 2)


async def test_a_broken_fence_takes_nobody_along(sqlite: SqliteStore) -> None:
    """They share a commit."""
    held = await prepared(sqlite)
    stale = Record(kind="lock", key="l", revision=7, body="mine")
    async with busy_writer(sqlite, web().id):
        batch = [
            asyncio.create_task(keep(sqlite, fence(held, "marked"))),
            asyncio.create_task(keep(sqlite, fence(stale))),
            asyncio.create_task(create(sqlite)),
        ]
        await asyncio.sleep(0)
    results = await asyncio.gather(*batch, return_exceptions=True)
    assert [type(each) for each in results] == [type(None), FenceBroken, type(None)]


async def test_whoever_changes_the_record_finds_all_that_was_done_behind_it(
    postgres_dsn: str,
) -> None:
    """Two nodes: one is inside its transaction while the other takes the lock over."""
    async with nodes(postgres_dsn, 2) as (one, two), stranger(postgres_dsn) as other:
        held = await prepared(one)
        taking: list[asyncio.Task[Record]] = []
        loop = asyncio.get_running_loop()

        def step(scope: Scope, moment: Moment) -> Change:
            taking.append(
                loop.create_task(two.keep("lock", "l", "yours", expected=held.revision, by=ME))
            )
            return changing(scope, moment)

        await other.execute("BEGIN")
        await other.execute("LOCK TABLE journal IN EXCLUSIVE MODE")
        done = asyncio.create_task(one.transact(web().id, step, by=ME, fences=[fence(held)]))
        await other.wait_until_blocked(2)
        assert not taking[0].done()
        await other.leave()
        receipt = await done
        await taking[0]
        assert await two.read(web().id) == receipt.scope
        with pytest.raises(FenceBroken):
            await one.transact(web().id, changing, by=ME, fences=[fence(held)])


async def test_a_record_is_held_no_longer_than_its_scope(postgres_dsn: str) -> None:
    """Who waits for a scope holds no record, or two who wait could wait for each other."""
    async with nodes(postgres_dsn, 2) as (one, two), stranger(postgres_dsn) as other:
        held = await prepared(one)
        await other.enter(web().id)
        waiting = asyncio.create_task(transact(one, fence(held)))
        await other.wait_until_blocked()
        async with asyncio.timeout(HANG_S):
            await two.keep("lock", "l", "yours", expected=held.revision, by=ME)
        await other.leave()
        with pytest.raises(FenceBroken):
            await waiting
