"""What every store promises when many callers come at once."""

import asyncio
from collections import Counter

import pytest

from fairwarning.core.commands import Cancel, Operate, Tick
from fairwarning.core.decide import Change, decide
from fairwarning.core.limits import pending_operations, refuse_over_limit
from fairwarning.core.model import OperationKind, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import Moment, Signal, Store
from tests.stores.fleet import ME, deciding, declare, new_id, vm, web, whole_journal
from tests.stores.steps import changing

LIMIT = 10


async def operate(store: Store, scope: Scope) -> None:
    (name,) = scope.roster.instances
    command = Operate(event_id=new_id(), kind=OperationKind.RESTART, instance=name)

    def step(before: Scope, moment: Moment) -> Change:
        change = decide(before, command, moment.now_ms)
        refuse_over_limit(before, change.scope, moment.pending_operations, LIMIT)
        return change

    await store.transact(scope.id, step, by=ME, counting=True)


async def test_operations_are_counted_exactly(store: Store) -> None:
    """Fifty at once in each of two subscriptions; ten of each are let through."""
    fleet = [vm(f"v{n}", subscription=name) for name in ("s1", "s2") for n in range(50)]
    await declare(store, *fleet)
    results = await asyncio.gather(
        *(operate(store, scope) for scope in fleet), return_exceptions=True
    )
    refusals = [each for each in results if isinstance(each, Refused)]
    assert {each.code for each in refusals} == {Code.TOO_MANY_OPERATIONS}
    assert len([each for each in results if each is None]) == 2 * LIMIT
    pending: Counter[str] = Counter()
    for scope in fleet:
        pending[scope.roster.subscription] += pending_operations(await store.read(scope.id))
    assert pending == {"s1": LIMIT, "s2": LIMIT}


async def test_an_operation_that_is_over_is_counted_no_more(store: Store) -> None:
    scope, other = vm("v"), vm("other")
    await declare(store, scope, other)
    seen: list[int] = []

    async def look() -> None:
        def step(before: Scope, moment: Moment) -> Change:
            seen.append(moment.pending_operations)
            return decide(before, Tick(), moment.now_ms)

        await store.transact(other.id, step, by=ME, counting=True)

    await look()
    await operate(store, scope)
    await look()
    (event,) = (await store.read(scope.id)).unfinished
    await store.transact(scope.id, deciding(Cancel(event_id=event.id)), by=ME)
    await look()
    assert seen == [0, 1, 0]


async def test_two_hundred_changes_of_one_scope_all_happen(store: Store) -> None:
    id = await declare(store, web())
    told: list[Signal] = []
    store.listen(told.append)
    receipts = await asyncio.gather(*(store.transact(id, changing, by=ME) for _ in range(200)))
    first = 3
    assert sorted(each.scope.revision for each in receipts) == list(range(first, first + 200))
    assert (await store.read(id)).revision == first + 199
    entries = [each for each in await whole_journal(store) if each.revision >= first]
    assert [each.revision for each in entries] == list(range(first, first + 200))
    assert len(told) == 200


async def test_a_step_never_sees_less_than_was_answered_before(store: Store) -> None:
    """Each caller's own changes, and whatever else had been answered, are in what it reads."""
    id = await declare(store, web())
    answered = 0

    async def caller() -> None:
        nonlocal answered
        for _ in range(10):
            known = answered
            receipt = await store.transact(id, changing, by=ME)
            assert receipt.scope.revision > known
            answered = max(answered, receipt.scope.revision)
            assert (await store.read(id)).revision >= receipt.scope.revision

    await asyncio.gather(*(caller() for _ in range(10)))


async def test_callers_who_go_away_disturb_nobody(store: Store) -> None:
    id = await declare(store, web())
    callers = [asyncio.create_task(store.transact(id, changing, by=ME)) for _ in range(40)]
    await asyncio.sleep(0)
    for caller in callers[::2]:
        caller.cancel()
    results = await asyncio.gather(*callers, return_exceptions=True)
    stayed = [each for each in results[1::2] if not isinstance(each, BaseException)]
    assert len(stayed) == 20
    await store.transact(id, changing, by=ME)
    revision = (await store.read(id)).revision
    entries = await whole_journal(store, id)
    assert sorted({each.revision for each in entries}) == list(range(1, revision + 1))


async def test_refusals_and_changes_at_once_do_not_mix(store: Store) -> None:
    id = await declare(store, web())

    async def one(number: int) -> int | None:
        step = changing if number % 3 else refusing
        try:
            return (await store.transact(id, step, by=ME)).scope.revision
        except Refused:
            return None

    def refusing(scope: Scope, moment: Moment) -> Change:
        raise Refused(Code.NO_TARGET, "no")

    results = await asyncio.gather(*(one(number) for number in range(90)))
    assert sorted(each for each in results if each) == list(range(3, 63))
    assert results[::3] == [None] * 30


async def test_two_scopes_never_wait_for_each_other(store: Store) -> None:
    await declare(store, web("one"), web("two"))
    with pytest.raises(Refused):
        await store.transact(ScopeId("nobody"), deciding(Tick()), by=ME)
    await asyncio.gather(
        *(store.transact(web(name).id, changing, by=ME) for name in ("one", "two") * 20)
    )
    for name in ("one", "two"):
        assert (await store.read(web(name).id)).revision == 22
