"""A process that changes scopes and says so once it is told: see test_kill.py."""

import asyncio
import os
import sys
from itertools import count

from fairwarning.core.commands import Activate, Cancel, Schedule
from fairwarning.core.model import EventType, InstanceName, ScopeId
from fairwarning.engine.clocks import SystemClock
from fairwarning.stores.sqlite import SqliteStore
from tests.core.builders import event_id
from tests.stores.fleet import ME, deciding, submit

IDS_EACH = 1_000_000


async def caller(store: SqliteStore, scope_id: ScopeId, first: int) -> None:
    target = (InstanceName(f"{scope_id.rpartition('/')[2]}-0"),)
    scope = (await submit(store, scope_id, Activate())).scope
    for left_over in scope.unfinished:
        await submit(store, scope_id, Cancel(event_id=left_over.id))
    for number in count(first):
        id = event_id(number)
        schedule = Schedule(event_id=id, type=EventType.REBOOT, targets=target)
        for command in (schedule, Cancel(event_id=id)):
            receipt = await store.transact(scope_id, deciding(command), by=ME)
            # One write of a short line: a kill cannot cut it.
            os.write(1, f"{scope_id} {receipt.scope.revision} {id}\n".encode())


async def run(path: str, generation: int) -> None:
    store = SqliteStore(path, SystemClock())
    await store.open()
    scope_ids = await store.scope_ids(limit=100)
    await asyncio.gather(
        *(
            caller(store, scope_id, (generation * len(scope_ids) + index) * IDS_EACH)
            for index, scope_id in enumerate(scope_ids)
        )
    )


asyncio.run(run(sys.argv[1], int(sys.argv[2])))
