"""Whoever holds something is alone with it, on whichever node, and knows when it is not."""

import asyncio
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace as changed

from fairwarning.core.commands import ChangePolicy, Schedule
from fairwarning.core.model import EventType, InstanceName, Policy, Scope, ScopeId
from fairwarning.core.rollouts.model import RolloutSpec
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import (
    FenceBroken,
    Record,
    RecordChanged,
    Store,
    StoreDown,
)
from fairwarning.notifications.model import TargetDraft, TargetKind
from fairwarning.operator_api import record_leases
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.idempotency import Kept, KeyHold
from fairwarning.operator_api.locks import KIND, Lock, held
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.record_leases import LEASE_MS, Hold
from fairwarning.operator_api.scale_sets import groups_of, members, resize
from tests.notifications.rig import SharedStore
from tests.operator_api.rig import ME, Block
from tests.operator_api.two_nodes import SET, Pair, node, pair
from tests.stores.nodes import wait_for

POLICY = ChangePolicy(policy=Policy())


class BothLook:
    """A store of which two readers know the same before either of them writes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._both = asyncio.Barrier(2)

    async def record(self, kind: str, key: str) -> Record | None:
        found = await self._store.record(kind, key)
        if not self._both.broken and kind == KIND:
            await self._both.wait()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def attempt(control: Control, until: asyncio.Event) -> str:
    try:
        async with held(control, "set", by=ME):
            await until.wait()
            return "worked"
    except Problem as problem:
        until.set()
        return f"{problem.status} {problem.code}"


@pytest.mark.parametrize("nodes", [1, 2])
async def test_of_two_who_find_it_free_one_gets_it(nodes: int) -> None:
    store = cast(Store, BothLook(SharedStore(VirtualClock())))
    one = node(store)
    two = one if nodes == 1 else node(store)
    refused = asyncio.Event()
    answers = await asyncio.gather(attempt(one, refused), attempt(two, refused))
    assert sorted(answers) == ["409 resource-busy", "worked"]


async def test_it_is_free_again_whatever_happened_meanwhile() -> None:
    async with pair() as nodes:

        async def break_off() -> None:
            async with held(nodes.one, "set", by=ME):
                assert await nodes.store.record(KIND, "set") is not None
                raise ValueError("broke")

        with pytest.raises(ValueError, match="broke"):
            await break_off()
        assert await nodes.store.record(KIND, "set") is None
        async with held(nodes.two, "set", by=ME):
            pass


async def test_who_holds_it_is_named_to_the_other() -> None:
    async with pair() as nodes, held(nodes.one, "set", by=ME):
        with pytest.raises(Problem, match=r"set is just being changed by operator:me; nothing"):
            async with held(nodes.two, "set", by=ME):
                pass


@pytest.mark.parametrize(("passes_ms", "is_free"), [(LEASE_MS - 1, False), (LEASE_MS, True)])
async def test_a_holder_that_died_is_waited_for_until_its_lease_is_over(
    passes_ms: int, is_free: bool
) -> None:
    async with pair() as nodes:
        dead = held(nodes.one, "set", by=ME)
        await dead.__aenter__()
        nodes.clock.step(passes_ms)
        if is_free:
            async with held(nodes.two, "set", by=ME):
                pass
        else:
            with pytest.raises(Problem):
                await held(nodes.two, "set", by=ME).__aenter__()
        await dead.__aexit__(None, None, None)


async def test_a_holder_that_takes_longer_than_its_lease_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store's clock counts, and it goes on by half a lease between two renewals."""
    monkeypatch.setattr(record_leases, "RENEWAL_S", 0.0)
    async with pair() as nodes, held(nodes.one, "set", by=ME) as locked:
        for _ in range(5):
            before = await nodes.store.record(KIND, "set")
            nodes.clock.step(LEASE_MS // 2)
            await renewed(nodes, before)
            with pytest.raises(Problem):
                await held(nodes.two, "set", by=ME).__aenter__()
        await locked.engine.submit(nodes.scopes[0].id, POLICY, by=ME)


async def test_a_renewal_that_meets_an_outage_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_leases, "RENEWAL_S", 0.0)
    monkeypatch.setattr(record_leases, "AGAIN_S", 0.0)
    async with pair() as nodes, held(nodes.one, "set", by=ME):
        real, failures = nodes.store.keep, iter(range(3))

        async def keep(*args: Any, **named: Any) -> Record:
            if next(failures, None) is not None:
                raise StoreDown("switched off by the test")
            return await real(*args, **named)

        monkeypatch.setattr(nodes.store, "keep", keep)
        before = await nodes.store.record(KIND, "set")
        nodes.clock.step(1)
        await renewed(nodes, before)


async def test_whoever_was_given_up_changes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is paused between two scopes of its set, and wakes up when another has resized it."""
    async with pair() as nodes:
        block = Block(monkeypatch, nodes.first, "transact")
        late = asyncio.create_task(grow(nodes.one, nodes.scopes, 120))
        await block.reached.wait()
        nodes.clock.step(LEASE_MS)
        await grow(nodes.two, nodes.scopes, 102)
        after = await nodes.store.scopes(limit=99)
        block.open()
        with pytest.raises(Problem) as problem:
            await late
        assert (problem.value.status, problem.value.code) == (409, "lock-lost")
        assert await nodes.store.scopes(limit=99) == after
        assert len(members(await groups_of(nodes.one, nodes.scopes[0]))) == 102
        assert await nodes.store.records(KIND, limit=9) == []


async def test_whoever_was_given_up_takes_nothing_from_the_next() -> None:
    async with pair() as nodes:
        late = held(nodes.one, "set", by=ME)
        await late.__aenter__()
        nodes.clock.step(LEASE_MS)
        async with held(nodes.two, "set", by=ME):
            mine = await nodes.store.record(KIND, "set")
            await late.__aexit__(None, None, None)
            assert await nodes.store.record(KIND, "set") == mine


async def test_a_lock_that_was_taken_and_released_by_another_is_lost_all_the_same() -> None:
    """Its record begins again at revision 1, which is the one that the first holder knows."""
    async with pair() as nodes:
        late = held(nodes.one, "set", by=ME)
        locked = await late.__aenter__()
        nodes.clock.step(LEASE_MS)
        async with held(nodes.two, "set", by=ME):
            pass
        async with held(nodes.two, "set", by=ME):
            with pytest.raises(FenceBroken) as broken:
                await locked.engine.submit(nodes.scopes[0].id, POLICY, by=ME)
        assert broken.value.fence.record.key == "set"
        await late.__aexit__(None, None, None)


async def test_a_renewal_that_comes_late_does_not_keep_the_lock_when_its_holder_is_done() -> None:
    """Its caller had gone away; the store carried it out all the same."""
    async with pair() as nodes:
        async with held(nodes.one, "set", by=ME):
            record = await nodes.store.record(KIND, "set")
            assert record is not None
            renewed_body = record.body.replace('"until_ms":', '"until_ms":1')
            await nodes.store.keep(KIND, "set", renewed_body, by=ME)
        assert await nodes.store.record(KIND, "set") is None


async def test_whoever_read_that_it_is_free_takes_nothing_from_who_came_since() -> None:
    """What he read was another record of the same revision."""
    async with pair() as nodes:
        dead = Lock(by="eva", owner="dead")
        body = msgspec.json.encode(dead).decode()
        old = await nodes.store.keep(KIND, "set", body, by=ME)
        await nodes.store.drop(KIND, "set", by=ME)
        async with held(nodes.one, "set", by=ME):
            new = await nodes.store.record(KIND, "set")
            assert new is not None
            assert new.revision == old.revision
            late = Hold(nodes.two.leases, KIND, "set", dead, by=ME)
            with pytest.raises(RecordChanged):
                await nodes.two.leases.take(late, old, nodes.clock.now())
            assert await nodes.store.record(KIND, "set") == new
            assert nodes.two.leases._at_work == set()


async def test_nothing_is_remembered_of_who_is_done() -> None:
    async with pair() as nodes:
        async with held(nodes.one, "set", by=ME):
            assert len(nodes.one.leases._at_work) == 1
        assert nodes.one.leases._at_work == set()


async def test_one_lock_within_another_needs_both() -> None:
    async with pair() as nodes, held(nodes.one, "inner", by=ME) as outer:
        lost = held(outer, "outer", by=ME)
        locked = await lost.__aenter__()
        scope = nodes.scopes[0].id
        await locked.engine.submit(scope, POLICY, by=ME)
        await nodes.store.drop(KIND, "inner", by=ME)
        for write in (
            locked.engine.submit(scope, POLICY, by=ME),
            locked.engine.create([changed(nodes.scopes[0], id=scope)], by=ME),
            locked.store.keep("a", "b", "{}", by=ME),
            locked.store.drop("a", "b", by=ME),
        ):
            with pytest.raises(FenceBroken):
                await write
        await lost.__aexit__(None, None, None)


async def test_who_lost_the_outer_lock_is_not_told_that_it_was_the_inner_one() -> None:
    async with pair() as nodes, held(nodes.one, "outer", by=ME) as outer:

        async def lose_it() -> None:
            async with held(outer, "inner", by=ME) as locked:
                await nodes.store.drop(KIND, "outer", by=ME)
                await locked.engine.submit(nodes.scopes[0].id, POLICY, by=ME)

        with pytest.raises(FenceBroken) as broken:
            await lose_it()
        assert broken.value.fence.record.key == "outer"


async def test_whatever_writes_needs_the_lock() -> None:
    async with pair() as nodes:
        event = nodes.one.engine.new_id()
        reboot = Schedule(
            event_id=event, type=EventType.REBOOT, targets=(InstanceName("workers_0"),)
        )
        scope = nodes.scopes[0].id
        await nodes.one.engine.submit(scope, reboot, by=ME)
        token, _ = await nodes.one.tokens.create("ci", Role.VIEWER, None, by=ME, why="")
        spec = RolloutSpec(type=EventType.FREEZE, scope_ids=(scope,))
        hook = TargetDraft(name="hook", kind=TargetKind.WEBHOOK, url="http://127.0.0.1:9/")
        lost = held(nodes.one, "set", by=ME)
        locked = await lost.__aenter__()
        await nodes.store.drop(KIND, "set", by=ME)
        before = await nodes.store.journal(limit=99)
        for write in (
            locked.engine.approve(event, by=ME),
            locked.store.transact(scope, lambda *_: None, by=ME),  # type: ignore[arg-type]
            locked.store.create([changed(nodes.scopes[0], id=ScopeId("new"))], by=ME),
            locked.tokens.create("eva", Role.VIEWER, None, by=ME, why=""),
            locked.tokens.revoke(token.id, by=ME, why=""),
            locked.rollouts.create(spec, by=ME, why=""),
            locked.notifications.create(hook, by=ME),
        ):
            with pytest.raises(FenceBroken):
                await write
        assert await nodes.store.journal(limit=99) == before
        assert await nodes.store.records("notification-cursor", limit=9) == []
        await lost.__aexit__(None, None, None)


async def test_the_reason_goes_with_what_is_done_behind_a_lock() -> None:
    async with pair() as nodes, held(nodes.one, "set", by=ME) as locked:
        id, first = locked.engine.new_id(), nodes.scopes[0]
        freeze = Schedule(event_id=id, type=EventType.FREEZE, targets=(InstanceName("workers_0"),))
        await locked.engine.submit(first.id, freeze, by=ME, why="one")
        await locked.engine.approve(id, by=ME, why="two")
        other = changed(
            first, id=ScopeId(f"{first.id}9"), roster=changed(first.roster, instances={})
        )
        await locked.engine.create([other], by=ME, why="three")
        whys = {each.why for each in await nodes.store.journal(limit=99)}
        assert {"one", "two", "three"} <= whys


async def test_what_is_done_is_done_though_its_lock_cannot_be_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is free when its lease is over; whoever asked is not told that it failed."""

    async def down(*_: object, **__: object) -> bool:
        raise StoreDown("switched off by the test")

    async with pair() as nodes:
        async with held(nodes.one, "set", by=ME) as locked:
            await locked.engine.submit(nodes.scopes[0].id, POLICY, by=ME)
            monkeypatch.setattr(nodes.first, "drop", down, raising=False)
        assert await nodes.store.record(KIND, "set") is not None


async def test_a_mark_whose_answer_was_lost_is_looked_up_before_the_next_change() -> None:
    """Otherwise a key would pass for unused although something was stored under it."""
    async with pair() as nodes:
        all_held = nodes.one.leases
        kept = Kept(asked="", seed="", began_ms=nodes.clock.now())
        key = KeyHold(all_held, "idempotency", "key", kept, by=ME)
        await all_held.take(key, None, nodes.clock.now())

        async def change(what: str) -> None:
            async with key.fence() as fence:
                await nodes.store.keep("made", what, "{}", by=ME, fences=[fence])
                if what == "first":
                    raise StoreDown("its answer was lost")

        with pytest.raises(StoreDown):
            await change("first")
        await change("second")
        assert (await key.known()).has_begun
        assert len(await nodes.store.records("made", limit=9)) == 2


async def renewed(nodes: Pair, before: Record | None) -> None:
    async def is_another() -> bool:
        return await nodes.store.record(KIND, "set") != before

    await wait_for(is_another)


async def grow(control: Control, scopes: list[Scope], capacity: int) -> None:
    await resize(control, scopes, capacity, by=ME)


def test_the_set_of_these_tests_has_several_scopes() -> None:
    assert SET.capacity > 100
