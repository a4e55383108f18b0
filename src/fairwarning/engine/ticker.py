"""Fires what is due, on time, without polling the store.

Theory of operation. The store knows the earliest deadline of all scopes; the ticker asks
for it once and sleeps until then. Every commit sends a signal with its scope's deadline,
and an earlier one wakes the ticker. On a shared store a signal can be lost, so there it
also looks again now and then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fairwarning.core.instants import Instant, later
from fairwarning.core.model import ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.ports import Alarm, Clock, Due, ScopeBusy, Signal, Store, StoreDown

BATCH_SCOPES_MAX = 256
RECHECK_MS = 5_000
BUSY_PAUSE_MS = 20
OUTAGE_PAUSE_MS = 500

_log = logging.getLogger(__name__)


class Ticker:
    def __init__(
        self, store: Store, clock: Clock, tick: Callable[[ScopeId], Awaitable[object]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._tick = tick
        self._alarm: Alarm
        self._sleeps_until: Instant | None = None
        self._asleep = False

    def on_signal(self, signal: Signal) -> None:
        """Wakes the ticker only for a deadline before the one that it sleeps towards."""
        deadline = signal.next_deadline_ms
        if deadline is None:
            return
        if not self._asleep or self._sleeps_until is None or deadline < self._sleeps_until:
            self._alarm.ring()

    def start(self) -> asyncio.Task[None]:
        self._alarm = self._clock.alarm()
        task = asyncio.create_task(self._run(), name="ticker")
        task.add_done_callback(lambda _: self._alarm.close())
        return task

    async def _run(self) -> None:
        while True:
            await self._round()

    async def _round(self) -> None:
        try:
            due = await self._store.due(BATCH_SCOPES_MAX)
            are_busy = await self._tick_all(due)
        except StoreDown as outage:
            _log.warning("the store is down, trying again: %s", outage)
            await self._sleep(OUTAGE_PAUSE_MS, None)
            return
        if are_busy:
            await self._sleep(BUSY_PAUSE_MS, None)
        elif not due.scope_ids:
            left = None if due.next_deadline_ms is None else due.next_deadline_ms - due.now_ms
            await self._sleep(self._capped(left), due.next_deadline_ms)

    def _capped(self, left_ms: int | None) -> int | None:
        if not self._store.is_shared:
            return left_ms
        return RECHECK_MS if left_ms is None else min(left_ms, RECHECK_MS)

    async def _sleep(self, for_ms: int | None, until: Instant | None) -> None:
        """The store's clock says how long; ours, which may differ, only measures it."""
        self._sleeps_until, self._asleep = until, True
        try:
            await self._alarm.wait(None if for_ms is None else later(self._clock.now(), for_ms))
        finally:
            self._asleep = False

    async def _tick_all(self, due: Due) -> bool:
        """Whether another node held one of the scopes, so that it must be looked at again."""
        results = await asyncio.gather(
            *(self._tick(scope_id) for scope_id in due.scope_ids), return_exceptions=True
        )
        for result in results:
            if isinstance(result, Refused) and result.code is Code.UNKNOWN_SCOPE:
                continue
            if isinstance(result, BaseException) and not isinstance(result, ScopeBusy):
                raise result
        return any(isinstance(result, ScopeBusy) for result in results)
