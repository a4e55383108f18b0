"""This module renews the lease of a node on one impact, and gives it back.

The store sets the end of a lease by its own clock. The node counts the duration of the lease from
the moment when it began the transaction, on a clock that cannot be set. The store read its clock
after that moment, so the lease lasts at least as long as the node counts, however late the answer
came.
"""

import logging
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from fairwarning.core.commands import Command, Release, RenewLease, ReportHook
from fairwarning.core.limits import Timing
from fairwarning.core.model import HookProgress, NodeId, ScopeId, Work
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import Alarm, Clock, LeaseLost, Order, Receipt, StoreDown

RETRY_PAUSE_MS = 500
"""The pause before asking a store again that is down. A lease must not run out meanwhile."""

Submit = Callable[[ScopeId, Command], Awaitable[Receipt]]
_log = logging.getLogger(__name__)


class Lease:
    """The lease of this node on one impact, as far as this node knows."""

    def __init__(
        self,
        order: Order,
        work: Work,
        until_ms: int,
        clock: Clock,
        submit: Submit,
        timing: Timing,
    ) -> None:
        self.order = order
        self.attempt = order.attempt
        self._node = order.node
        self._failures = work.failures
        self.progress: HookProgress = work.hooks
        """The hooks that have ended, as far as this node knows."""
        self.is_over = False
        """Whether the call of the driver has ended or was cancelled."""
        self._until_ms = until_ms
        """The end of the lease by the steady clock. By the clock of the store it may be later."""
        self._stored_until_ms = order.lease_until_ms
        """The end of the lease by the clock of the store."""
        self._clock = clock
        self._submit = submit
        self._spare_ms = min(timing.lease_ms, timing.attempt_ms) // 3

    def is_continued_by(self, work: Work) -> bool:
        """Return whether the driver call that is running here also serves this attempt."""
        if self.is_over:
            return False
        if (work.hooks.outcome is None) != (self.progress.outcome is None):
            # The impact is over, and this call does not know of it. Only hooks are left.
            return False
        # The node got another name when the store stepped back. Its calls went on.
        is_renamed = work.node != self._node
        # The lease ended while the store was down. No other node had the work since, and it has
        # not failed. A call that takes too long counts as failed and must end.
        is_next = work.attempt == self.attempt + 1 and work.failures == self._failures
        return is_renamed or is_next

    def extend(self, work: Work, until_ms: int) -> None:
        """Use the driver call that is running for this later attempt, too."""
        assert work.node is not None
        assert work.lease_until_ms is not None
        self.attempt, self._node, self._failures = work.attempt, work.node, work.failures
        self._until_ms, self._stored_until_ms = until_ms, work.lease_until_ms

    @property
    def node(self) -> NodeId:
        return self._node

    def as_holder(self, report: ReportHook) -> ReportHook:
        """Return the report under the attempt and the name that this node has now."""
        return replace(report, attempt=self.attempt, node=self._node)

    def work_in(self, receipt: Receipt) -> Work | None:
        """Return the work if this node still has it after this commit, else None."""
        # The event may have left the scope, if this commit has ended it.
        event = receipt.scope.events.get(self.order.key)
        work = None if event is None else event.work
        if work is None or (work.attempt, work.node) != (self.attempt, self._node):
            return None
        return work

    def begin_impact(self, progress: HookProgress) -> None:
        """Let the impact begin when the hooks before it have ended."""
        self.order = replace(self.order, started_ms=progress.ready_ms or self.order.started_ms)

    def renewed_order(self) -> Order:
        """Return the order with the end of the lease after the last renewal."""
        if self._stored_until_ms == self.order.lease_until_ms:
            return self.order
        return replace(self.order, lease_until_ms=self._stored_until_ms)

    async def confirm(self, alarm: Alarm) -> None:
        """Return when the lease holds for some more time. Raises LeaseLost if it is lost. If
        needed, the lease is renewed first. While the store is down, this waits.
        """
        while not self._holds():
            try:
                granted_ms = await self.renew()
            except StoreDown as outage:
                _log.warning("%s waits for the store: %s", self.order.key, outage)
                await alarm.pause(RETRY_PAUSE_MS)
            else:
                if granted_ms is not None and granted_ms < self._spare_ms:
                    raise LeaseLost("the time for this attempt is nearly over")
                # Otherwise the answer was late, and we have the lease; renew it once more.

    async def renew(self) -> int | None:
        """Renew the lease. Returns how long it lasts from now on, in milliseconds.

        Returns None if this node got the next attempt in the meantime, so that the answer says
        nothing about the present lease. Raises LeaseLost if this node no longer has the work, or
        StoreDown.
        """
        order, attempt, node = self.order, self.attempt, self._node
        began_ms = self._clock.steady_ms()
        renewal = RenewLease(event_id=order.key, attempt=attempt, node=node)
        try:
            receipt = await self._submit(order.scope_id, renewal)
        except Refused as refused:
            if (attempt, node) != (self.attempt, self._node):
                return None
            raise LeaseLost(str(refused)) from None
        # The outbox has handled this receipt already, and may have extended the lease.
        work = self.work_in(receipt)
        if work is not None:
            assert work.lease_until_ms is not None
            self._stored_until_ms = work.lease_until_ms
            self._until_ms = known_until_ms(receipt, work, began_ms)
            return self._until_ms - began_ms
        if (attempt, node) != (self.attempt, self._node):
            return None
        raise LeaseLost("another node has taken it over, or it has ended")

    async def give_back(self) -> None:
        order = self.order
        release = Release(event_id=order.key, attempt=self.attempt, node=self._node)
        try:
            await self._submit(order.scope_id, release)
        except (Refused, StoreDown) as reason:
            _log.info("could not give back %s: %s", order.key, reason)

    def _holds(self) -> bool:
        return self._clock.steady_ms() + self._spare_ms <= self._until_ms


def known_until_ms(receipt: Receipt, work: Work, began_ms: int) -> int:
    """Return the end of the lease by the steady clock, or an earlier time. It is safe because the
    store read its clock after the transaction was begun.
    """
    assert work.lease_until_ms is not None
    return began_ms + (work.lease_until_ms - receipt.at_ms)
