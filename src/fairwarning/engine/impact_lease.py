"""This module knows how long a node's lease on one impact lasts, renews it and gives it back.

The store says until when a lease lasts, by its own clock. A node measures it from the moment when
it began the transaction, on a clock that no step changes: the store read its clock after that
moment, so the lease lasts at least as long, however late the reply came.
"""

import logging
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from fairwarning.core.commands import Command, Release, RenewLease
from fairwarning.core.limits import Timing
from fairwarning.core.model import ScopeId, Work
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import Alarm, Clock, LeaseLost, Order, Receipt, StoreDown

RETRY_PAUSE_MS = 500
"""The pause between two tries to reach a store that is down."""

Submit = Callable[[ScopeId, Command], Awaitable[Receipt]]
_log = logging.getLogger(__name__)


class Lease:
    """This node's hold on one impact, as far as it can be known here."""

    def __init__(
        self,
        order: Order,
        failures: int,
        until_ms: int,
        clock: Clock,
        submit: Submit,
        timing: Timing,
    ) -> None:
        self.order = order
        self.attempt = order.attempt
        self._node = order.node
        self._failures = failures
        self.is_over = False
        """The driver's part has ended, or was ended."""
        self._until_ms = until_ms
        """By the steady clock; the store may say that it is longer."""
        self._stored_until_ms = order.lease_until_ms
        """By the store's clock."""
        self._clock = clock
        self._submit = submit
        self._spare_ms = min(timing.lease_ms, timing.attempt_ms) // 3

    def is_continued_by(self, work: Work) -> bool:
        """Whether the call that is under way here serves this attempt of our node too."""
        if self.is_over:
            return False
        # The node has another name since the store stepped back; its calls went on.
        is_renamed = work.node != self._node
        # The lease ran out while the store was away. Nobody else has had it since, and it has
        # not failed: a call that takes too long is a failure, and is not to go on for ever.
        is_next = work.attempt == self.attempt + 1 and work.failures == self._failures
        return is_renamed or is_next

    def extend(self, work: Work, until_ms: int) -> None:
        """Take the call under way as this attempt from now on."""
        assert work.node is not None
        assert work.lease_until_ms is not None
        self.attempt, self._node, self._failures = work.attempt, work.node, work.failures
        self._until_ms, self._stored_until_ms = until_ms, work.lease_until_ms

    def renewed_order(self) -> Order:
        """The order to carry out now, with the lease as it was renewed."""
        if self._stored_until_ms == self.order.lease_until_ms:
            return self.order
        return replace(self.order, lease_until_ms=self._stored_until_ms)

    async def confirm(self, alarm: Alarm) -> None:
        """Return only while the lease is known to hold, with time to spare; else LeaseLost.

        If need be it is renewed first, and a store that is down is waited for.
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
                # Otherwise the reply was late, and the lease is ours: it is renewed once more.

    async def renew(self) -> int | None:
        """Renew the lease, and return how long it lasts from here, in milliseconds.

        Returns None if the next attempt was handed to us while the reply was on its way, so that it
        says nothing of the lease that we have now. Raises LeaseLost if the scope says that the work
        is no longer ours, or StoreDown.
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
        # The event is gone if this very commit has ended it, and others after it.
        event = receipt.scope.events.get(order.key)
        work = None if event is None else event.work
        # The outbox has seen this receipt first, and may have extended the lease by it.
        if work is not None and (work.attempt, work.node) == (self.attempt, self._node):
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
    """Until when the lease lasts at least: the store read its clock after the transaction was
    begun.
    """
    assert work.lease_until_ms is not None
    return began_ms + (work.lease_until_ms - receipt.at_ms)
