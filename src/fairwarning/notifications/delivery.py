"""Sends messages about journal entries to one target, in the order of the journal.

How it works. The journal is the queue. A target's cursor says up to which entry it was notified.
A node that finds a wanted entry takes a lease on the cursor, sends the message, and moves the
cursor by compare-and-set; meanwhile other nodes do not send to this target. A message that fails
is stored as a delivery before the cursor moves, and is tried again later; the messages after it do
not wait. If a node dies, its lease runs out, and another node continues from the cursor: a message
may be sent twice, with the same id, but none is lost. The cursor is in the same store as the
journal, so if the store steps back, both do, and the worker forgets what it remembered.
"""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, SECOND_MS, Instant, later
from fairwarning.core.model import Event
from fairwarning.core.scope_names import is_meant
from fairwarning.core.transitions import kind_of
from fairwarning.engine.journal_reader import JournalReader, PastChanged
from fairwarning.engine.protocols import Clock, Entry, RecordChanged, Store, StoreDown
from fairwarning.notifications import records
from fairwarning.notifications.formats import event_at, is_tellable, message_to
from fairwarning.notifications.model import Delivery, Filters, Message, Outcome, Target
from fairwarning.notifications.records import Cursor, HeldCursor, NotificationRecords
from fairwarning.notifications.sender import Sender

RECHECK_MS = 5_000  # How late a message may be if a signal was lost.
OUTAGE_PAUSE_MS = 1_000  # Every target has a worker, so they ask less often.
PAGE_ENTRIES_MAX = 200  # A page must be decoded quickly, because polls wait meanwhile.
UNTOLD_MAX = 1_000
"""How many unwanted entries the worker skips before it stores the cursor."""

_log = logging.getLogger(__name__)

PAUSES_MS = (
    SECOND_MS,
    5 * SECOND_MS,
    30 * SECOND_MS,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
)
"""The pause after each failure; after the last one the message becomes a dead letter."""
JITTER = 0.2  # So that many messages are not tried again at the same moment.


LEASE_MS = MINUTE_MS
"""How long a node's lease lasts: longer than any single try takes."""


class Worker:
    def __init__(
        self,
        target: Target,
        *,
        store: Store,
        clock: Clock,
        sender: Sender,
        node: str,
        random_number: Callable[[], float],
    ) -> None:
        self._target = target
        self._store = store
        self._records = NotificationRecords(store)
        self._clock = clock
        self._sender = sender
        self._node = node
        self._random = random_number
        self._alarm = clock.alarm()
        self._held: HeldCursor | None = None
        """The cursor as this worker last read or wrote it."""
        self._reader = JournalReader(store)
        """Reads the entries after the cursor. It may be ahead of the cursor by unwanted entries."""
        self._passed = 0
        self._next_try: Instant | None = None
        self._is_full = False
        self._unkept: tuple[tuple[str, int, int], Outcome] | None = None
        """The key and outcome of the last try until they are stored, so that it is not repeated."""
        self._must_look = True
        self._stops = False

    def ring(self, *, must_look: bool = False) -> None:
        """Wake the worker. With `must_look` it reads its target's records again."""
        self._must_look |= must_look
        self._alarm.ring()

    def stop(self) -> None:
        """Stop the worker after the try that is under way."""
        self._stops = True
        self._alarm.ring()

    def close(self) -> None:
        self._alarm.close()

    async def run(self) -> None:
        while not self._stops:
            until = await self._safe_round()
            if not self._stops:
                await self._alarm.wait(until)

    async def _safe_round(self) -> Instant | None:
        """Do one round, and return when the next is due. It is None if only a ring starts one."""
        try:
            until = await self._round()
        except RecordChanged:
            self._unkept = None  # Another node was faster.
            return self._look_again(OUTAGE_PAUSE_MS)
        except StoreDown as outage:
            self._must_look = True
            _log.warning("notifications to %s wait for the store: %s", self._target.name, outage)
            return self._look_again(OUTAGE_PAUSE_MS)
        except Exception:
            # No error may end the worker, because later messages must still be sent.
            _log.exception("notifications to %s stumbled and go on", self._target.name)
            return self._look_again(RECHECK_MS)
        if not self._store.is_shared:
            return until
        # A signal can be lost, and a node that died may have left something to try again.
        self._must_look = True
        return self._soon(RECHECK_MS) if until is None else min(until, self._soon(RECHECK_MS))

    async def _round(self) -> Instant | None:
        if self._must_look:
            self._must_look = False
            if await self._look() is None:
                return None
        if not await self._has_work():
            await self._note_passed()
            return self._next_try
        held = await self._look()
        if held is None:
            return None
        now = await self._lease_now()
        if not is_free_for(self._node, held.cursor, now):
            self._must_look = True
            return self._soon(held.cursor.lease_until_ms - now)
        # Check again, because another node may have done the work in the meantime.
        if await self._has_work():
            await self._move(taken_by(self._node, held.cursor, now))
            await self._work()
        return self._clock.now() if await self._has_work() else self._next_try

    async def _look(self) -> HeldCursor | None:
        """Read the cursor again. If the target was removed, stop this worker and return None."""
        held = await self._records.cursor(self._target.id)
        if held is None:
            # Another node may have removed it while this one was storing a delivery.
            await self._records.clear(self._target.id)
            self._stops = True
            return None
        if self._held != held:
            self._begin_at(held.cursor)
        self._held = held
        self._note_waiting(await self._records.waiting(self._target.id))
        return held

    async def _has_work(self) -> bool:
        is_due = self._next_try is not None and self._next_try <= self._clock.now()
        return is_due or (not self._is_full and await self._find_wanted() is not None)

    async def _find_wanted(self) -> tuple[Entry, Event | None] | None:
        """Return the next entry that the target wants, with its event, or None if there is none."""
        filters = self._target.filters
        while page := await self._page():
            for entry in page:
                if may_want(filters, entry):
                    event = await event_at(self._store, entry)
                    if wants(filters, event) and await is_tellable(
                        self._store, self._target, entry, event
                    ):
                        return entry, event
                self._reader.passed(entry)
                self._passed += 1
        return None

    async def _page(self) -> list[Entry]:
        try:
            return await self._reader.page(PAGE_ENTRIES_MAX)
        except PastChanged:
            self._held = None
            if await self._look() is None:
                raise RecordChanged(self._target.id) from None
        return await self._reader.page(PAGE_ENTRIES_MAX)

    def _begin_at(self, cursor: Cursor) -> None:
        self._reader = JournalReader(self._store, cursor.position)
        self._passed = 0

    async def _note_passed(self) -> None:
        last = self._reader.last
        is_free = is_free_for(self._node, self._cursor, await self._lease_now())
        if self._passed >= UNTOLD_MAX and is_free and last is not None:
            await self._move(Cursor(position=last.position))

    async def _work(self) -> None:
        """Send new messages and due retries under the lease, then release the lease."""
        waiting = await self._records.waiting(self._target.id)
        for _ in range(records.WAITING_MAX - len(waiting)):
            found = None if self._stops else await self._find_wanted()
            if found is None:
                break
            await self._tell(*found)
        for delivery in await self._records.waiting(self._target.id):
            if delivery.next_try_ms <= self._clock.now() and not self._stops:
                await self._try_again(delivery)
        self._note_waiting(await self._records.waiting(self._target.id))
        await self._move(Cursor(position=self._cursor.position))

    async def _tell(self, entry: Entry, event: Event | None) -> None:
        delivery = Delivery(
            id=records.delivery_id(entry, self._target.id),
            target_id=self._target.id,
            position=entry.position,
            message=await message_to(self._store, self._target, entry, event),
            attempts=0,
            next_try_ms=self._clock.now(),
            last_error="",
        )
        # The delivery is already stored if a node died after that and before it moved the cursor.
        if not await self._records.is_waiting(delivery):
            outcome = await self._try(delivery)
            if not outcome.is_delivered:
                await self._put_aside(delivery, outcome)
        await self._move(replace(self._cursor, position=entry.position))
        self._unkept = None

    async def _try_again(self, delivery: Delivery) -> None:
        outcome = await self._try(delivery)
        if outcome.is_delivered:
            await self._records.take_waiting(delivery)
        else:
            await self._put_aside(delivery, outcome)
        self._unkept = None

    async def _try(self, delivery: Delivery) -> Outcome:
        if self._unkept is None or self._unkept[0] != delivery.try_key:
            outcome = await self._send(delivery.message)
            self._unkept = (delivery.try_key, outcome)
        return self._unkept[1]

    async def _put_aside(self, delivery: Delivery, outcome: Outcome) -> None:
        """Store the failed delivery for another try, or as a dead letter after the last try."""
        attempts = delivery.attempts + 1
        again = None
        if not outcome.is_final:
            again = next_try_ms(attempts, self._clock.now(), self._random())
        self._log_failure(outcome, attempts, is_dead=again is None)
        failed = replace(delivery, attempts=attempts, last_error=outcome.error)
        if again is not None:
            await self._records.put_waiting(replace(failed, next_try_ms=again))
            return
        await self._records.put_dead(failed)
        await self._records.take_waiting(failed)

    def _log_failure(self, outcome: Outcome, attempts: int, *, is_dead: bool) -> None:
        then = "it is a dead letter now" if is_dead else "it will be tried again"
        name = self._target.name
        _log.warning(
            "notification to %s failed, try %d: %s; %s", name, attempts, outcome.error, then
        )

    async def _send(self, message: Message) -> Outcome:
        now = await self._lease_now()
        if needs_renewal(self._cursor, now):
            await self._move(taken_by(self._node, self._cursor, now))
        # A virtual clock does not wait for the network.
        self._alarm.close()
        try:
            return await self._sender.send(self._target, message)
        finally:
            self._alarm = self._clock.alarm()

    async def _lease_now(self) -> Instant:
        """Return the time for leases: the store's time if the store is shared, else the clock's."""
        if self._store.is_shared:
            return (await self._store.due(1)).now_ms
        return self._clock.now()

    @property
    def _cursor(self) -> Cursor:
        assert self._held is not None, "the cursor is read before anything else"
        return self._held.cursor

    async def _move(self, cursor: Cursor) -> None:
        """Store the cursor. Raises RecordChanged if another node has changed it."""
        assert self._held is not None
        is_onward = cursor.position != self._held.cursor.position
        self._held = await self._records.move(self._target.id, self._held, cursor)
        if is_onward:
            self._begin_at(cursor)

    def _note_waiting(self, waiting: list[Delivery]) -> None:
        self._next_try = min((each.next_try_ms for each in waiting), default=None)
        self._is_full = len(waiting) >= records.WAITING_MAX

    def _look_again(self, in_ms: int) -> Instant:
        """Return when to do the next round after a failure. That round reads the records again."""
        self._must_look = True
        return self._soon(in_ms)

    def _soon(self, in_ms: int) -> Instant:
        return later(self._clock.now(), in_ms)


def next_try_ms(attempts: int, now: Instant, random_number: float) -> Instant | None:
    """Return when to try again after `attempts` failures, or None. `random_number` is in [0, 1)."""
    assert attempts >= 1
    if attempts > len(PAUSES_MS):
        return None
    spread = 1 + JITTER * (2 * random_number - 1)
    return later(now, round(PAUSES_MS[attempts - 1] * spread))


def may_want(filters: Filters, entry: Entry) -> bool:
    """Return whether the filters accept the kind and scope. Then `wants` must check the event."""
    if kind_of(entry.transition) not in filters.kinds:
        return False
    return not filters.scopes or any(is_meant(entry.scope_id, name) for name in filters.scopes)


def wants(filters: Filters, event: Event | None) -> bool:
    """Return whether the filters accept the event. Filters by type or source never accept None."""
    if filters.types and (event is None or event.type not in filters.types):
        return False
    return not filters.sources or (event is not None and event.source in filters.sources)


def is_free_for(node: str, cursor: Cursor, now: Instant) -> bool:
    """Return whether `node` may take the cursor. A lease that ends too late is ignored: the clock
    was set back after it was written.
    """
    left_ms = cursor.lease_until_ms - now
    return cursor.node in {"", node} or not 0 < left_ms <= 2 * LEASE_MS


def taken_by(node: str, cursor: Cursor, now: Instant) -> Cursor:
    return replace(cursor, node=node, lease_until_ms=later(now, LEASE_MS))


def needs_renewal(cursor: Cursor, now: Instant) -> bool:
    return cursor.lease_until_ms - now < LEASE_MS // 2
