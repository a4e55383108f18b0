"""The engine on the durable stores, across crashes of the process and of a node."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairwarning.boot import make_store
from fairwarning.core.commands import Approve, Schedule
from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import EventType, InstanceName, Phase, instance_actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from tests.core.builders import E1, E2, names
from tests.engine.harness import ME, Rig, kill

REBOOT = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0"), duration_s=30)
Open = Callable[[VirtualClock], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Makes the same store again and again, as starts of the program do."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/fw.db"
    else:
        dsn = dict(part.split("=", 1) for part in request.getfixturevalue("postgres_dsn").split())
        url = f"postgresql://{dsn['user']}@/{dsn['dbname']}?host={dsn['host']}"
    return lambda clock: make_store(url, clock, has_own_time=True)


async def test_what_was_announced_before_a_crash_happens_after_it(open_store: Open) -> None:
    clock = VirtualClock()
    store = open_store(clock)
    await store.open()
    rig = Rig(store, clock)
    engine = await rig.node("first")
    scope = await rig.declare(engine)
    receipt = await engine.submit(scope.id, REBOOT, by=ME)
    kill(engine)
    await store.close()
    clock.step(5 * MINUTE_MS)

    store = open_store(clock)
    await store.open()
    rig = Rig(store, clock)
    engine = await rig.node("second")
    not_before = receipt.scope.events[E1].not_before_ms
    await clock.advance_to(type(not_before)(not_before - 1))
    assert (await store.read(scope.id)).events[E1].phase is Phase.SCHEDULED
    assert (await store.read(scope.id)).incarnation == 2
    await clock.advance(MINUTE_MS)
    assert (await store.read(scope.id)).events[E1].phase is Phase.COMPLETED
    await engine.stop()
    await store.close()


async def test_an_impact_that_a_crash_interrupted_is_resumed(open_store: Open) -> None:
    clock = VirtualClock()
    store = open_store(clock)
    await store.open()
    rig = Rig(store, clock)
    engine = await rig.node("first")
    scope = await rig.declare(engine)
    await engine.submit(scope.id, REBOOT, by=ME)
    web_1 = instance_actor(InstanceName("web-1"))
    await engine.submit(scope.id, Approve(event_id=E1, by=web_1), by=web_1)
    kill(engine)
    await store.close()

    store = open_store(clock)
    await store.open()
    rig = Rig(store, clock)
    engine = await rig.node("second")
    await clock.advance(29 * SECOND_MS)
    assert (await store.read(scope.id)).events[E1].phase is Phase.STARTED
    await clock.advance(MINUTE_MS)
    assert (await store.read(scope.id)).events[E1].phase is Phase.COMPLETED
    assert (await rig.history()).count("HandedOver") == 2
    await engine.stop()
    await store.close()


async def test_two_nodes_on_one_postgres_do_each_thing_once(postgres_dsn: str) -> None:
    dsn = dict(part.split("=", 1) for part in postgres_dsn.split())
    url = f"postgresql://{dsn['user']}@/{dsn['dbname']}?host={dsn['host']}"
    clock = VirtualClock()
    stores = [make_store(url, clock, has_own_time=True) for _ in range(2)]
    for store in stores:
        await store.open()
    rigs = [Rig(store, clock) for store in stores]
    first, second = [await rig.node(f"node{n}") for n, rig in enumerate(rigs)]
    scope = await rigs[0].declare(first)
    await first.submit(scope.id, REBOOT, by=ME)
    freeze = Schedule(event_id=E2, type=EventType.FREEZE, targets=names("web-1"))
    await second.submit(scope.id, freeze, by=ME)
    await clock.advance(HOUR_MS)
    history = await rigs[1].history()
    assert [history.count(name) for name in ("Started", "HandedOver", "Completed")] == [2, 2, 2]
    for engine, store in zip((first, second), stores, strict=True):
        await engine.stop()
        await store.close()
