"""Owners' operations through a whole engine: drivers, power, limits, all or none."""

import pytest

from fairwarning.core.commands import ChangeModel, Operate, OperateAll, UpgradeInstances
from fairwarning.core.instants import MINUTE_MS, SECOND_MS
from fairwarning.core.model import InstanceName, OperationKind, Phase, Power
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import ScaleSet, VirtualMachine
from fairwarning.engine.protocols import Alarm, Lease, Order
from fairwarning.engine.service import Engine, Rules
from tests.core.builders import E1, names
from tests.engine.harness import ME, Rig

POOL = ScaleSet(
    name="pool",
    capacity=4,
    addresses=("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"),
    terminate_notice_ms=5 * MINUTE_MS,
)


def batch(engine: Engine, kind: OperationKind, *targets: str) -> OperateAll:
    return OperateAll(kind=kind, targets=tuple((engine.new_id(), n) for n in names(*targets)))


@pytest.mark.parametrize(
    ("kind", "power"),
    [
        (OperationKind.STOP, Power.STOPPED),
        (OperationKind.DEALLOCATE, Power.DEALLOCATED),
        (OperationKind.START, Power.RUNNING),
    ],
)
async def test_the_power_changes_when_the_driver_is_done(kind: OperationKind, power: Power) -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine, POOL)
    command = Operate(event_id=E1, kind=kind, instance=InstanceName("pool_0"))
    await engine.submit(scope.id, command, by=ME)
    await rig.clock.advance(5 * SECOND_MS - 1)
    assert (await rig.store.read(scope.id)).events[E1].phase is Phase.STARTED
    await rig.clock.advance(1)
    after = await rig.store.read(scope.id)
    assert after.events[E1].phase is Phase.COMPLETED
    assert after.roster.instances[InstanceName("pool_0")].power is power
    await engine.stop()


async def test_a_driver_is_told_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    engine = await rig.node()
    scope = await rig.declare(engine, POOL)
    orders: list[Order] = []

    async def do(order: Order, alarm: Alarm, lease: Lease) -> None:
        orders.append(order)

    monkeypatch.setattr(rig.driver, "do", do)
    for kind in (OperationKind.REIMAGE, OperationKind.STOP):
        await engine.submit(scope.id, batch(engine, kind, "pool_0"), by=ME)
        await rig.clock.settle()
    assert [(each.type, each.operation) for each in orders] == [
        ("Reboot", "reimage"),
        ("Power", "stop"),
    ]
    await engine.stop()


async def test_a_deleted_set_is_gone_at_the_timeout_with_addresses_and_events() -> None:
    rig = Rig()
    engine = await rig.node(rules=Rules(operations_pending_max=1))
    scope = await rig.declare(engine, POOL)
    command = batch(engine, OperationKind.DELETE, "pool_0", "pool_1", "pool_2", "pool_3")
    await engine.submit(scope.id, command, by=ME)
    await rig.clock.advance(5 * MINUTE_MS - 1)
    assert len((await rig.store.read(scope.id)).roster.live) == 4
    await rig.clock.advance(1 + 5 * SECOND_MS)
    after = await rig.store.read(scope.id)
    assert not after.roster.live
    assert not after.unfinished
    assert [await rig.store.locate(each) for each in POOL.addresses] == [None] * 4
    await engine.stop()


async def test_the_limit_counts_each_of_several() -> None:
    rig = Rig()
    engine = await rig.node(rules=Rules(operations_pending_max=3))
    scope = await rig.declare(engine, POOL)
    other = await rig.declare(engine, VirtualMachine(name="db"))
    await engine.submit(other.id, batch(engine, OperationKind.RESTART, "db"), by=ME)
    before = await rig.store.read(scope.id)
    too_many = batch(engine, OperationKind.RESTART, "pool_0", "pool_1", "pool_2")
    with pytest.raises(Refused) as refused:
        await engine.submit(scope.id, too_many, by=ME)
    assert refused.value.code is Code.TOO_MANY_OPERATIONS
    assert await rig.store.read(scope.id) == before
    two = batch(engine, OperationKind.REDEPLOY, "pool_0", "pool_1")
    await engine.submit(scope.id, two, by=ME)
    delete = batch(engine, OperationKind.DELETE, "pool_2", "pool_3")
    await engine.submit(scope.id, delete, by=ME)
    stop = batch(engine, OperationKind.STOP, "pool_2", "pool_3")
    await engine.submit(scope.id, stop, by=ME)
    await engine.stop()


async def test_reimages_that_are_announced_count_and_others_do_not() -> None:
    rig = Rig()
    engine = await rig.node(rules=Rules(operations_pending_max=1))
    scope = await rig.declare(engine, POOL)
    unseen = batch(engine, OperationKind.REIMAGE, "pool_0", "pool_1")
    await engine.submit(scope.id, unseen, by=ME)
    model = ChangeModel(terminate_notice_ms=None, reimage_notice_ms=15 * MINUTE_MS)
    await engine.submit(scope.id, model, by=ME)
    await engine.submit(scope.id, UpgradeInstances(names=names("pool_2", "pool_3")), by=ME)
    seen = batch(engine, OperationKind.REIMAGE, "pool_2", "pool_3")
    with pytest.raises(Refused) as refused:
        await engine.submit(scope.id, seen, by=ME)
    assert refused.value.code is Code.TOO_MANY_OPERATIONS
    await engine.stop()
