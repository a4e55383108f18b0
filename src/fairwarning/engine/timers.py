"""The ticker does what is due, on time, without polling the store.

Theory of operation. The store knows the earliest deadline of all scopes. The ticker asks for it
once and sleeps until then. Each commit sends a signal with the deadline of its scope; an earlier
deadline wakes the ticker. On a shared store a signal can be lost, so there the ticker also looks
from time to time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fairwarning.core.instants import Instant
from fairwarning.core.model import ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import Alarm, Clock, Due, ScopeBusy, Signal, Store, StoreDown

BATCH_SCOPES_MAX = 256  # As many as one commit of SQLite takes.
RECHECK_MS = 5_000  # How late a deadline may be if a signal was lost.
LEFT_PAUSE_MS = 20  # About as long as the transaction of another node takes.
OUTAGE_PAUSE_MS = 500  # Short enough to go on soon after an outage.

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
        self._is_asleep = False

    def on_signal(self, signal: Signal) -> None:
        """Wake the ticker if the deadline is earlier than the time until which it sleeps."""
        deadline = signal.next_deadline_ms
        if deadline is None:
            return
        if not self._is_asleep or self._sleeps_until is None or deadline < self._sleeps_until:
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
            are_left = await self._tick_all(due)
        except StoreDown as outage:
            _log.warning("the store is down, trying again: %s", outage)
            await self._sleep(OUTAGE_PAUSE_MS)
            return
        except Exception:
            # The ticker must go on after any error, for the other scopes.
            _log.exception("the ticker stumbled and goes on")
            await self._sleep(OUTAGE_PAUSE_MS)
            return
        if are_left:
            await self._sleep(LEFT_PAUSE_MS)
        elif not due.scope_ids:
            await self._sleep_until(due)

    async def _sleep_until(self, due: Due) -> None:
        deadline = due.next_deadline_ms
        self._sleeps_until = deadline
        if not self._store.is_shared:
            await self._asleep(self._alarm.wait(deadline))
            return
        # The clock of the store says how long to wait. Ours may differ, so it only measures that.
        left_ms = RECHECK_MS if deadline is None else min(deadline - due.now_ms, RECHECK_MS)
        await self._asleep(self._alarm.pause(left_ms))

    async def _sleep(self, for_ms: int) -> None:
        self._sleeps_until = None
        await self._asleep(self._alarm.pause(for_ms))

    async def _asleep(self, sleep: Awaitable[None]) -> None:
        self._is_asleep = True
        try:
            await sleep
        finally:
            self._is_asleep = False

    async def _tick_all(self, due: Due) -> bool:
        """Tick these scopes. Returns whether one was busy or failed and must be tried again."""
        results = await asyncio.gather(
            *(self._tick(scope_id) for scope_id in due.scope_ids), return_exceptions=True
        )
        are_left = False
        for scope_id, result in zip(due.scope_ids, results, strict=True):
            match result:
                case ScopeBusy():
                    are_left = True
                case StoreDown():
                    raise result
                case Refused(code=Code.UNKNOWN_SCOPE):
                    continue
                case Exception():
                    are_left = True
                    _log.error("the turn of %s broke", scope_id, exc_info=result)
                case _:
                    continue
        return are_left
