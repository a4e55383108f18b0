"""Removes expired records (idempotency keys, ARM operations) every hour."""

import asyncio
import logging

import msgspec

from fairwarning.azure_api.operations import KEPT_MS as OPERATIONS_KEPT_MS
from fairwarning.azure_api.operations import Operations, first_id_at
from fairwarning.core.instants import Instant, later
from fairwarning.core.model import ENGINE
from fairwarning.engine.protocols import Clock, Fence, FenceBroken, Store, StoreDown
from fairwarning.operator_api.idempotency import KEPT_MS, KIND, Kept

PAUSE_S = 3_600  # What is removed is a day old, so an hour more does not matter.
PAGE_RECORDS_MAX = 500  # Reading so few at once does not hold up polls.
_log = logging.getLogger(__name__)


class RecordCleanup:
    """Runs every hour of the wall clock, because a virtual clock may jump by years at once."""

    def __init__(self, store: Store, wall: Clock) -> None:
        self._store = store
        self._wall = wall
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="cleanup of records")

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await delete_old_keys(self._store, self._wall.now())
                await delete_old_operations(self._store, self._wall)
            except StoreDown as outage:
                _log.info("the removal of expired records waits for the store: %s", outage)
            except Exception:
                # A record that cannot be read must not end it: the others would never be removed.
                _log.exception("the removal of expired records stumbled and goes on")
            await asyncio.sleep(PAUSE_S)


async def delete_old_keys(store: Store, now: Instant) -> None:
    """Remove idempotency keys that are older than a day."""
    after = ""
    while page := await store.records(KIND, after=after, limit=PAGE_RECORDS_MAX):
        after = page[-1].key
        for record in page:
            kept = msgspec.json.decode(record.body, type=Kept)
            if kept.began_ms + KEPT_MS < now:
                try:
                    await store.drop(KIND, record.key, by=ENGINE, fences=[Fence(record=record)])
                except FenceBroken:
                    continue  # Another request has just taken the key again.


async def delete_old_operations(store: Store, wall: Clock) -> None:
    """Remove ARM operations that began more than a day ago, unless they still run."""
    operations = Operations(store, wall)
    until = first_id_at(later(wall.now(), -OPERATIONS_KEPT_MS))
    after = ""
    while page := await operations.page(after=after, until=until, limit=PAGE_RECORDS_MAX):
        after = page[-1].id
        for operation in page:
            if (await operations.state(operation)).is_over:
                await operations.forget(operation)
