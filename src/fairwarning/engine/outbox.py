"""The outbox calls the drivers for the impacts that this node has taken, and reports the results.

Theory of operation. `HandedOver` is committed together with the start, so after a crash the work is
still in the scope, under a lease that ends. The outbox keeps nothing across a restart; the node
that takes over asks the driver what became of the key. While a driver works, the lease is renewed.
If the node has lost the work, the driver call is cancelled without a report.

Receipts may come late and in any order. A receipt that is older than the newest known revision of
its scope is ignored, so an attempt that has ended never looks new again.

Hooks before the impact run in the same call, and hooks after it when its outcome is stored
(`impact_hooks.py`). The lease is renewed meanwhile, too.

An answer of the store may also come after the lease has ended. So a driver is called only while the
lease is known to hold for some more time (`impact_lease.py`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from fairwarning.core.commands import ReportDone, ReportFailure
from fairwarning.core.hooks import HookStage
from fairwarning.core.limits import Timing
from fairwarning.core.model import (
    Event,
    EventId,
    HookProgress,
    NodeId,
    Roster,
    Scope,
    ScopeId,
    Work,
)
from fairwarning.core.refusals import Refused
from fairwarning.engine.impact_hooks import ImpactHooks, RunHook
from fairwarning.engine.impact_lease import RETRY_PAUSE_MS, Lease, Submit, known_until_ms
from fairwarning.engine.protocols import (
    Alarm,
    Clock,
    Driver,
    DriverFailed,
    Drivers,
    Found,
    LeaseLost,
    Order,
    Receipt,
    StoreDown,
)

REASON_CHARS_MAX = 500  # The reason is kept in the scope and in the journal.

T = TypeVar("T")
Report = ReportDone | ReportFailure
_log = logging.getLogger(__name__)


class Outbox:
    def __init__(
        self,
        *,
        clock: Clock,
        drivers: Drivers,
        run_hook: RunHook,
        submit: Submit,
        node: NodeId,
        timing: Timing,
    ) -> None:
        self._clock = clock
        self._drivers = drivers
        self._hooks = ImpactHooks(clock=clock, submit=submit, run=run_hook)
        self._submit = submit
        self._node = node
        self._timing = timing
        self._tasks: dict[asyncio.Task[None], Lease] = {}
        self._newest: dict[ScopeId, int] = {}
        """The newest revision of each scope that the outbox has seen."""
        self._attempts: dict[ScopeId, dict[EventId, int]] = {}
        """The last attempt that was taken for each event under way."""
        self._asks_first = False
        """Whether the driver is asked before the first attempt, as the store may have lost one."""
        self._is_closed = False
        self._left: list[Lease] = []
        """The work that was handed to this node after it was stopped. It is to be given back."""

    def open(self) -> None:
        self._is_closed = False

    def change_node(self, node: NodeId) -> None:
        """Continue under another name, because the store has stepped back to an older state.

        Work that the store has handed to the old name may be done already, so it is left until its
        lease ends. From now on the driver is asked before the first attempt too. Impacts under way
        go on.
        """
        self._node = node
        self._asks_first = True
        self._newest, self._attempts = {}, {}

    def take(self, receipt: Receipt, began_ms: int) -> None:
        """Start the work that was handed to this node. `began_ms` is the transaction's begin."""
        scope = receipt.scope
        if scope.revision <= self._newest.get(scope.id, 0):
            return
        self._newest[scope.id] = scope.revision
        taken = self._attempts.get(scope.id)
        if taken is not None:
            self._forget_ended(scope, taken)
        for event in scope.events.values():
            work = event.work
            if work is None or work.node != self._node:
                continue
            if taken is None or taken.get(event.id, 0) < work.attempt:
                taken = self._attempts.setdefault(scope.id, {})
                taken[event.id] = work.attempt
                self._begin(scope, event, work, known_until_ms(receipt, work, began_ms))

    def _forget_ended(self, scope: Scope, taken: dict[EventId, int]) -> None:
        for id in [id for id in taken if id not in scope.events or scope.events[id].is_finished]:
            del taken[id]
        if not taken:
            del self._attempts[scope.id]

    def _begin(self, scope: Scope, event: Event, work: Work, until_ms: int) -> None:
        may_be_under_way = work.attempt > 1 or self._asks_first
        earlier: dict[asyncio.Task[None], Lease] = {}
        if may_be_under_way:
            earlier = {task: old for task, old in self._tasks.items() if old.order.key == event.id}
        for lease in earlier.values():
            if lease.is_continued_by(work):
                lease.extend(work, until_ms)
                return
        order = _order(scope, event, work, may_be_under_way=may_be_under_way)
        lease = Lease(order, work, until_ms, self._clock, self._submit, self._timing)
        if self._is_closed:
            self._left.append(lease)
            return
        alarm = self._clock.alarm()
        run = self._run(scope.roster, lease, alarm, list(earlier))
        task = asyncio.create_task(run, name=f"impact {order.key}")
        self._tasks[task] = lease
        task.add_done_callback(self._forget)
        # Not in the task itself: a task that is cancelled before its first turn never runs.
        task.add_done_callback(lambda _: alarm.close())

    async def stop(self) -> None:
        """Cancel the driver calls. From now on nothing is begun. Call `give_back` next."""
        self._is_closed = True
        running = dict(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._left += running.values()

    async def give_back(self) -> None:
        """Give back the work that this node still has, so that nobody waits for its lease to end.
        Call this when no commit is under way, because a commit may hand work to this node.
        """
        left, self._left = self._left, []
        await asyncio.gather(*(lease.give_back() for lease in left))

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("impact broke off; its lease will run out", exc_info=error)

    async def _run(
        self, roster: Roster, lease: Lease, alarm: Alarm, earlier: Sequence[asyncio.Task[None]]
    ) -> None:
        """Carry out the impact, after `earlier` attempts that are running here were cancelled."""
        for task in earlier:
            task.cancel()
        if earlier:
            await asyncio.gather(*earlier, return_exceptions=True)
        progress: HookProgress | None = lease.progress
        try:
            if lease.progress.outcome is None:
                progress = await self._impact(roster, lease, alarm)
            if progress is not None and progress.outcome is not None:
                lease.progress = progress
                await self._kept(lambda own: self._after(roster, lease, own), lease, alarm)
        finally:
            lease.is_over = True

    async def _impact(self, roster: Roster, lease: Lease, alarm: Alarm) -> HookProgress | None:
        """Return what is stored when the impact is over. None means that no hook is left to run, or
        that this node no longer has the work.
        """
        ended: Report | HookProgress | None
        ended = await self._kept(lambda own: self._attempt(roster, lease, own), lease, alarm)
        if ended is None or isinstance(ended, HookProgress):
            return ended
        work = await self._report(lease, ended, alarm)
        return None if work is None else work.hooks

    async def _kept(
        self, call: Callable[[Alarm], Awaitable[T | None]], lease: Lease, alarm: Alarm
    ) -> T | None:
        """Make the call, and renew the lease until the call ends. Return the call's result, or None
        if the lease is lost.
        """
        own = self._clock.alarm()

        async def run() -> T | None:
            try:
                return await call(own)
            finally:
                # Ring before the alarm closes, or a virtual clock could find everybody asleep.
                alarm.ring()

        job = asyncio.create_task(run(), name=f"driver {lease.order.key}")
        job.add_done_callback(lambda _: own.close())
        try:
            return await self._result_of(job, lease, alarm)
        finally:
            if not job.done():
                lease.is_over = True
                job.cancel()
                await asyncio.gather(job, return_exceptions=True)

    async def _attempt(
        self, roster: Roster, lease: Lease, alarm: Alarm
    ) -> Report | HookProgress | None:
        """Call the hooks and the driver, and return the driver's report. Return what is stored if
        the hooks have ended the event, or None if this node no longer has the work.
        """
        order, name = lease.order, roster.driver
        try:
            driver = self._drivers.get(name)
            if driver is None:
                raise DriverFailed(f"no driver is called {name!r}; add one, or change the fleet")
            await lease.confirm(alarm)
            if await self._has_hooks_left(roster, driver, lease):
                progress = await self._hooks.run(
                    HookStage.BEFORE, roster.hooks.before, lease, alarm
                )
                if progress is None or progress.outcome is not None:
                    return progress
                lease.begin_impact(progress)
                order = lease.renewed_order()
                await lease.confirm(alarm)
            if order.may_be_under_way:
                if await driver.find(order) is Found.DONE:
                    return ReportDone(event_id=order.key)
                # The answer may have taken a long time.
                await lease.confirm(alarm)
            await driver.do(lease.renewed_order(), alarm, lease)
        except LeaseLost as lost:
            _log.warning("attempt %d of %s was not begun: %s", order.attempt, order.key, lost)
            return None
        except Exception as error:
            if not isinstance(error, DriverFailed):
                _log.exception("driver %r broke on %s", name, order.key)
            reason = (str(error) or type(error).__name__)[:REASON_CHARS_MAX]
            return ReportFailure(event_id=order.key, attempt=lease.attempt, reason=reason)
        else:
            return ReportDone(event_id=order.key)

    async def _has_hooks_left(self, roster: Roster, driver: Driver, lease: Lease) -> bool:
        """Return whether hooks must run before the driver is called. If the store may have lost
        data, the driver is asked whether an earlier attempt has called it.
        """
        if lease.progress.before >= len(roster.hooks.before):
            return False
        if not self._asks_first:
            return True
        return await driver.find(lease.order) not in (Found.RUNNING, Found.DONE)

    async def _after(self, roster: Roster, lease: Lease, alarm: Alarm) -> None:
        """Run the hooks after the impact. The event ends with the last one."""
        try:
            await self._hooks.run(HookStage.AFTER, roster.hooks.after, lease, alarm)
        except LeaseLost as lost:
            _log.warning("hooks of %s were left: %s", lease.order.key, lost)

    async def _result_of(self, job: asyncio.Task[T | None], lease: Lease, alarm: Alarm) -> T | None:
        """Renew the lease until the job ends. Return its result, or None if the lease is lost."""
        pause_ms = self._timing.lease_ms // 2
        while True:
            await alarm.pause(pause_ms)
            await asyncio.sleep(0)  # The job rings in its last turn, one before it is done.
            if job.done():
                return job.result()
            try:
                await lease.renew()
            except StoreDown:
                # Try again soon: after another half of the lease it would be too late.
                pause_ms = RETRY_PAUSE_MS
            except LeaseLost:
                return None
            else:
                pause_ms = self._timing.lease_ms // 2

    async def _report(self, lease: Lease, report: Report, alarm: Alarm) -> Work | None:
        """Store the outcome. Return the work if hooks are still to run, else None."""
        order = lease.order
        while True:
            if isinstance(report, ReportFailure):
                # While the store was down, this node may have got the next attempt.
                report = replace(report, attempt=lease.attempt)
            try:
                receipt = await self._submit(order.scope_id, report)
            except StoreDown as outage:
                _log.warning("the outcome of %s waits for the store: %s", order.key, outage)
                await alarm.pause(RETRY_PAUSE_MS)
            except Refused as reason:
                _log.info("the outcome of %s is no longer wanted: %s", order.key, reason)
                return None
            else:
                is_overtaken = isinstance(report, ReportFailure) and report.attempt < lease.attempt
                if not is_overtaken:
                    return lease.work_in(receipt)


def _order(scope: Scope, event: Event, work: Work, *, may_be_under_way: bool) -> Order:
    assert event.started_ms is not None
    assert work.node is not None
    assert work.lease_until_ms is not None
    roster = scope.roster
    return Order(
        key=event.id,
        attempt=work.attempt,
        node=work.node,
        lease_until_ms=work.lease_until_ms,
        may_be_under_way=may_be_under_way,
        type=event.type,
        operation=event.operation,
        scope_id=scope.id,
        instances=tuple(roster.instances[n] for n in event.resources if roster.has_live(n)),
        duration_s=event.duration_s,
        lasts_s=event.lasts_s,
        started_ms=work.hooks.ready_ms or event.started_ms,
        settings=roster.driver_settings,
    )
