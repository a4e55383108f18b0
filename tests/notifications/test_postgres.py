"""Nodes with connections of their own to one real PostgreSQL, on the real clock."""

import asyncio
from itertools import count

from fairwarning.core.commands import Activate, Cancel, Schedule
from fairwarning.core.model import ENGINE, EventType, NodeId
from fairwarning.core.transitions import Cancelled, Scheduled
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.service import Engine
from fairwarning.notifications.dispatcher import Notifications
from fairwarning.notifications.model import TargetDraft, TargetKind
from fairwarning.notifications.sender import NetworkSender
from fairwarning.stores.postgres import PostgresStore
from tests.core.builders import event_id, names
from tests.engine.harness import ME, WEB, ids
from tests.notifications.receiver import receiving

NODES = 3
ROUNDS = 5
WANTED = (Scheduled, Cancelled)


async def test_nodes_on_postgres_send_each_message_once_and_in_order(postgres_dsn: str) -> None:
    clock = SystemClock()
    stores = [PostgresStore(postgres_dsn) for _ in range(NODES)]
    for store in stores:
        await store.open()
    nodes = [
        Notifications(store=store, clock=clock, sender=NetworkSender(clock)) for store in stores
    ]
    engine = Engine(
        store=stores[0],
        clock=clock,
        drivers={"simulated": SimulatedDriver(clock)},
        node=NodeId("n"),
        ids=ids(),
    )
    (scope,) = await engine.declare([WEB], by=ME)
    await engine.submit(scope.id, Activate(), by=ENGINE)
    async with receiving() as receiver:
        draft = TargetDraft(name="hook", kind=TargetKind.WEBHOOK, url=receiver.url)
        await nodes[0].create(draft, by=ME)
        await asyncio.gather(*(each.start() for each in nodes))
        numbers = count(1)
        for _ in range(ROUNDS):
            for name in ("web-0", "web-1", "web-2", "web-3"):
                id = event_id(next(numbers))
                command = Schedule(event_id=id, type=EventType.REBOOT, targets=names(name))
                await engine.submit(scope.id, command, by=ME)
                await engine.submit(scope.id, Cancel(event_id=id), by=ME)
        await receiver.has(ROUNDS * 8)
        for each in nodes:
            await each.stop()
        journal = await stores[1].journal(limit=1_000)
        wanted = [each.position for each in journal if isinstance(each.transition, WANTED)]
        assert [each.json["id"] for each in receiver.requests] == wanted
    for store in stores:
        await store.close()
