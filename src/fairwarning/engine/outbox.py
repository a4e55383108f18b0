"""Carries out the impacts that this node has taken, and reports what became of them.

Theory of operation. `HandedOver` is committed together with the start, so a crash at any
line leaves the work in the scope, under a lease that runs out. Nothing here is remembered
across a restart: the node that takes over asks the driver what became of the key. While a
driver works, the lease is renewed; if the scope says that the work is no longer ours, the
driver call is dropped without a report.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fairwarning.core.commands import Command, Release, RenewLease, ReportDone, ReportFailure
from fairwarning.core.limits import Timing
from fairwarning.core.model import Event, EventId, NodeId, Scope, ScopeId
from fairwarning.core.refusals import Refused
from fairwarning.engine.ports import (
    Alarm,
    Clock,
    DriverFailed,
    Drivers,
    Found,
    Order,
    Receipt,
    StoreDown,
)

REPORT_PAUSE_MS = 500
REASON_CHARS_MAX = 500

Submit = Callable[[ScopeId, Command], Awaitable[Receipt]]
_log = logging.getLogger(__name__)


class Outbox:
    def __init__(
        self, *, clock: Clock, drivers: Drivers, submit: Submit, node: NodeId, timing: Timing
    ) -> None:
        self._clock = clock
        self._drivers = drivers
        self._submit = submit
        self._node = node
        self._timing = timing
        self._tasks: dict[asyncio.Task[None], Order] = {}
        self._taken: dict[EventId, int] = {}
        """The attempt that was last taken of each event under way."""

    def take(self, scope: Scope) -> None:
        """Starts what this scope has handed to us, once each. For every commit that we hear of."""
        for event in scope.events.values():
            work = event.work
            if event.is_finished:
                self._taken.pop(event.id, None)
            if work is None or work.node != self._node:
                continue
            if self._taken.get(event.id, 0) < work.attempt:
                self._taken[event.id] = work.attempt
                self._start(_order(scope, event, work.attempt), scope.roster.driver)

    def _start(self, order: Order, driver: str) -> None:
        alarm = self._clock.alarm()
        task = asyncio.create_task(self._run(order, driver, alarm), name=f"impact {order.key}")
        self._tasks[task] = order
        task.add_done_callback(self._forget)
        # Not by the task itself: one that is cancelled before its first turn never runs.
        task.add_done_callback(lambda _: alarm.close())

    async def stop(self) -> None:
        """Gives the work back, so that another node, or the next start, need not wait."""
        running = dict(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.gather(*(self._give_back(order) for order in running.values()))

    async def _give_back(self, order: Order) -> None:
        release = Release(event_id=order.key, attempt=order.attempt, node=self._node)
        try:
            await self._submit(order.scope_id, release)
        except (Refused, StoreDown) as reason:
            _log.info("could not give back %s: %s", order.key, reason)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("impact broke off; its lease will run out", exc_info=error)

    async def _run(self, order: Order, driver: str, alarm: Alarm) -> None:
        own = self._clock.alarm()
        job = asyncio.create_task(
            self._attempt(order, driver, own, alarm), name=f"driver {order.key}"
        )
        job.add_done_callback(lambda _: own.close())
        try:
            if await self._is_kept_while(job, order, alarm):
                await self._report(order, job.result(), alarm)
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    async def _attempt(self, order: Order, name: str, alarm: Alarm, keeper: Alarm) -> Command:
        """Never raises: whatever a driver does becomes a report."""
        try:
            driver = self._drivers.get(name)
            if driver is None:
                raise DriverFailed(f"no driver is called {name!r}; add one, or change the fleet")
            if order.attempt == 1 or await driver.find(order) is not Found.DONE:
                await driver.carry_out(order, alarm)
        except Exception as error:
            if not isinstance(error, DriverFailed):
                _log.exception("driver %r broke on %s", name, order.key)
            reason = (str(error) or type(error).__name__)[:REASON_CHARS_MAX]
            return ReportFailure(event_id=order.key, attempt=order.attempt, reason=reason)
        else:
            return ReportDone(event_id=order.key)
        finally:
            # Before it closes, or a virtual clock could see everybody asleep in between.
            keeper.ring()

    async def _is_kept_while(self, job: asyncio.Task[Command], order: Order, alarm: Alarm) -> bool:
        """Renews the lease until the job ends; False if the work was taken away meanwhile."""
        renewal = RenewLease(event_id=order.key, attempt=order.attempt, node=self._node)
        while True:
            await alarm.pause(self._timing.lease_ms // 2)
            await asyncio.sleep(0)  # The job rings in its last turn, one before it is done.
            if job.done():
                return True
            try:
                receipt = await self._submit(order.scope_id, renewal)
            except StoreDown:
                continue
            except Refused:
                return False
            work = receipt.scope.events[order.key].work
            if work is None or work.node != self._node or work.attempt != order.attempt:
                return False

    async def _report(self, order: Order, report: Command, alarm: Alarm) -> None:
        while True:
            try:
                await self._submit(order.scope_id, report)
            except StoreDown as outage:
                _log.warning("the outcome of %s waits for the store: %s", order.key, outage)
                await alarm.pause(REPORT_PAUSE_MS)
            except Refused as reason:
                _log.info("the outcome of %s is no longer wanted: %s", order.key, reason)
                return
            else:
                return


def _order(scope: Scope, event: Event, attempt: int) -> Order:
    assert event.started_ms is not None
    roster = scope.roster
    return Order(
        key=event.id,
        attempt=attempt,
        type=event.type,
        operation=event.operation,
        scope_id=scope.id,
        instances=tuple(roster.instances[n] for n in event.resources if roster.has_live(n)),
        duration_s=event.duration_s,
        lasts_s=event.lasts_s,
        started_ms=event.started_ms,
        settings=roster.driver_settings,
    )
