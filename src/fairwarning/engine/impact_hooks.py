"""This module runs the hooks around an impact, one after the other, and stores their results.

Theory of operation. A hook is tried until it succeeds or has no try left, and its result is stored
before anything else happens. Only the node that has the work can store it. So the driver is never
called by a node that lost the work while a hook was running, and the next node knows which hooks
have ended. A hook whose result was not stored runs again.
"""

import logging
from collections.abc import Awaitable, Callable

from fairwarning.common.escape import clean
from fairwarning.core.commands import ReportHook
from fairwarning.core.hooks import HOOK_OUTPUT_CHARS_MAX, Hook, HookStage
from fairwarning.core.model import HookProgress
from fairwarning.core.refusals import Refused
from fairwarning.engine.impact_lease import RETRY_PAUSE_MS, Lease, Submit
from fairwarning.engine.protocols import (
    Alarm,
    Clock,
    HookCall,
    HookResult,
    LeaseLost,
    Order,
    StoreDown,
)

RESULT_CHARS_MAX = 300  # The result is a part of a line of the history.

RunHook = Callable[[Order, HookCall], Awaitable[HookResult]]
"""Calls a hook once, within its time limit."""
_log = logging.getLogger(__name__)


async def no_hooks(order: Order, call: HookCall) -> HookResult:
    """Fail, because this engine was made without a way to call hooks."""
    return HookResult(is_done=False, result="this server runs no hooks")


class ImpactHooks:
    def __init__(self, *, clock: Clock, submit: Submit, run: RunHook) -> None:
        self._clock = clock
        self._submit = submit
        self._run = run

    async def run(
        self, stage: HookStage, hooks: tuple[Hook, ...], lease: Lease, alarm: Alarm
    ) -> HookProgress | None:
        """Run the hooks of this stage that have not ended yet. Return what is stored then, or None
        if the event is over. Raises LeaseLost.
        """
        progress: HookProgress | None = lease.progress
        while progress is not None and progress.counted(stage) < len(hooks):
            if (stage is HookStage.AFTER) != (progress.outcome is not None):
                break  # A hook has failed the event, or a late report of another node came in.
            await lease.confirm(alarm)
            number = progress.counted(stage) + 1
            report = await self._tries(stage, number, hooks[number - 1], lease, alarm)
            progress = await self._store(report, lease, alarm)
        return progress

    async def _tries(
        self, stage: HookStage, number: int, hook: Hook, lease: Lease, alarm: Alarm
    ) -> ReportHook:
        began_ms = self._clock.steady_ms()
        tried = 1
        while True:
            result = await self._try(stage, number, hook, lease, tried)
            if result.is_done or tried > hook.retries:
                break
            await alarm.pause(hook.pause_ms)
            await lease.confirm(alarm)
            tried += 1
        return ReportHook(
            event_id=lease.order.key,
            attempt=lease.attempt,
            node=lease.node,
            stage=stage,
            number=number,
            is_done=result.is_done,
            tries=tried,
            took_ms=self._clock.steady_ms() - began_ms,
            result=clean(result.result)[:RESULT_CHARS_MAX],
            # Cut first: the output of a program can be far longer than what is kept.
            output=clean(result.output[-HOOK_OUTPUT_CHARS_MAX:]).strip(),
        )

    async def _try(
        self, stage: HookStage, number: int, hook: Hook, lease: Lease, tried: int
    ) -> HookResult:
        call = HookCall(
            hook=hook,
            stage=stage,
            number=number,
            tried=tried,
            outcome=lease.progress.outcome,
            reason=lease.progress.reason,
        )
        try:
            return await self._run(lease.renewed_order(), call)
        except Exception as error:
            _log.exception("hook %s %d of %s broke", stage, number, lease.order.key)
            return HookResult(is_done=False, result=type(error).__name__)

    async def _store(self, report: ReportHook, lease: Lease, alarm: Alarm) -> HookProgress | None:
        """Store the result. While the store is down, this waits. Raises LeaseLost if this node no
        longer has the work.
        """
        while True:
            report = lease.as_holder(report)
            try:
                receipt = await self._submit(lease.order.scope_id, report)
            except StoreDown as outage:
                _log.warning("a hook of %s waits for the store: %s", lease.order.key, outage)
                await alarm.pause(RETRY_PAUSE_MS)
                continue
            except Refused as refused:
                raise LeaseLost(str(refused)) from None
            event = receipt.scope.events.get(lease.order.key)
            if event is None or event.is_finished:
                return None
            work = lease.work_in(receipt)
            if work is not None:
                is_counted = work.hooks.counted(report.stage) >= report.number
                if is_counted or work.hooks.outcome != lease.progress.outcome:
                    lease.progress = work.hooks
                    return work.hooks
            # This node may have got the next attempt while it was waiting for the store.
            if lease.as_holder(report) == report:
                raise LeaseLost("another node has taken it over, or its hooks have changed")
