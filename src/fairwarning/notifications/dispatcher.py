"""Manages the targets of notifications on this node, and runs a worker for each target.

Each target has its own worker, so a slow target never delays another. On a shared store every
node has a worker for every target, and the lease in the cursor says which node may send.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from random import SystemRandom

from msgspec.structs import replace

from fairwarning.core.model import Actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.webhook_signatures import secret_of
from fairwarning.engine.protocols import Alarm, Clock, Signal, Store, StoreDown
from fairwarning.notifications.delivery import OUTAGE_PAUSE_MS, RECHECK_MS, Worker
from fairwarning.notifications.formats import trial_to
from fairwarning.notifications.model import Delivery, Outcome, Target, TargetDraft
from fairwarning.notifications.records import TARGETS_MAX, NotificationRecords
from fairwarning.notifications.sender import Sender
from fairwarning.notifications.targets import checked_target

STOP_PATIENCE_S = 2.0
"""How long a try may still take when the node stops. A supervisor waits for the stop."""
ALONE = "alone"
"""The node's name if the store is not shared. After a restart, its leases are still its own."""

_RANDOM = SystemRandom().random
_log = logging.getLogger(__name__)


class _Keeper:
    """The task that starts and ends workers as targets change. All objects that `through` returns
    share one keeper, so all of them know when it has stopped.
    """

    task: asyncio.Task[None] | None = None
    alarm: Alarm | None = None
    """Wakes the task. It also rings after an outage, because the failed change may be stored."""


class Notifications:
    """The targets and their workers. Start it after the store is open; stop it before it closes."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        sender: Sender,
        random_number: Callable[[], float] = _RANDOM,
    ) -> None:
        """`random_number` returns a number in [0, 1), which varies the pauses between retries."""
        self._store = store
        self._clock = clock
        self._sender = sender
        self._records = NotificationRecords(store)
        self._node = secrets.token_hex(8) if store.is_shared else ALONE
        self._random = random_number
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._keeper = _Keeper()
        self._listens = False
        self._refreshing = asyncio.Lock()
        """A lock for reading and applying the list of targets, so that no old list is applied."""

    def through(self, store: Store) -> "Notifications":
        """Return an object with the same targets that writes its changes to `store`."""
        other = copy(self)
        other._records = NotificationRecords(store)
        return other

    async def start(self) -> None:
        if not self._listens:
            self._listens = True
            self._store.listen(self._on_signal)
        alarm = self._keeper.alarm = self._clock.alarm()
        task = self._keeper.task = asyncio.create_task(self._keep_up(alarm), name="notifications")
        task.add_done_callback(lambda _: alarm.close())

    async def stop(self) -> None:
        """Stop the workers. Messages that are not delivered yet are sent after the next start."""
        keeper = self._keeper
        if keeper.task is not None:
            keeper.task.cancel()
            await asyncio.gather(keeper.task, return_exceptions=True)
            keeper.task = keeper.alarm = None
        await self._end([*self._workers])
        await self._sender.close()

    async def create(self, draft: TargetDraft, *, by: Actor, why: str = "") -> Target:
        """Create a target for later entries, and return it with its secret. Raises Refused."""
        target = checked_target(
            draft,
            id=f"ntc-{secrets.token_hex(8)}",
            new_secret=secret_of(secrets.token_bytes(32)),
            now=self._clock.now(),
            by=by,
        )
        problem = await self._sender.problem(target)
        if problem is not None:
            raise Refused(Code.NOTIFICATION_INVALID, problem)
        _refuse_beside(target, await self._records.targets())
        with self._kept_up():
            await self._records.add_target(target, by=by, why=why)
        with suppress(StoreDown), self._kept_up():
            await self._refresh()
        return target

    async def list(self) -> Sequence[Target]:
        """Return the targets without their secrets."""
        return [each.without_secrets() for each in await self._records.targets()]

    async def remove(self, id: str, *, by: Actor, why: str = "") -> None:
        """Remove the target, its deliveries and its dead letters. Repeat it after an outage."""
        if await self._records.cursor(id) is None:
            await self._find(id)
        with self._kept_up():
            target = await self._records.target(id)
            if target is not None:
                await self._records.remove_target(target, by=by, why=why)
            async with self._refreshing:
                await self._end([id])
            await self._records.clear(id)

    async def test(self, id: str) -> Outcome:
        """Send one test message now, without retries, and return the result."""
        target = await self._find(id)
        message = trial_to(target, f"test-{secrets.token_hex(8)}", self._clock.now())
        return await self._sender.send(target, message)

    async def dead_letters(self, after: str = "", limit: int = 100) -> Sequence[Delivery]:
        """Return a page of dead letters, oldest first, that begins after the id `after`."""
        return await self._records.dead(after, limit)

    async def retry(self, id: str) -> None:
        """Try a dead letter again at once. If this fails, it is retried like a new message."""
        letter = await self._find_dead(id)
        await self._find(letter.target_id)
        again = replace(
            letter, attempts=0, next_try_ms=self._clock.now(), revivals=letter.revivals + 1
        )
        try:
            await self._records.put_waiting(again)
            await self._records.take_dead(letter)
        finally:
            # This also happens after an outage: the delivery may have been stored.
            found = self._workers.get(letter.target_id)
            if found is not None:
                found[0].ring(must_look=True)

    async def discard(self, id: str) -> None:
        await self._records.take_dead(await self._find_dead(id))

    async def _find(self, id: str) -> Target:
        target = await self._records.target(id)
        if target is None:
            raise _unknown("target", id, "the targets")
        return target

    async def _find_dead(self, id: str) -> Delivery:
        letter = await self._records.find_dead(id)
        if letter is None:
            raise _unknown("dead letter", id, "them")
        return letter

    @contextmanager
    def _kept_up(self) -> Iterator[None]:
        try:
            yield
        except StoreDown:
            if self._keeper.alarm is not None:
                self._keeper.alarm.ring()
            raise

    def _on_signal(self, _: Signal) -> None:
        for worker, _task in self._workers.values():
            worker.ring()

    async def _keep_up(self, alarm: Alarm) -> None:
        """Refresh the targets in a loop, because other nodes add and remove them too."""
        while True:
            try:
                await self._refresh()
            except StoreDown as outage:
                _log.warning("the targets of notifications wait for the store: %s", outage)
                await alarm.pause(OUTAGE_PAUSE_MS)
            else:
                await alarm.pause(RECHECK_MS if self._store.is_shared else None)

    async def _refresh(self) -> None:
        async with self._refreshing:
            targets = {each.id: each for each in await self._records.targets()}
            if self._keeper.task is None:
                return
            for target in targets.values():
                known = self._workers.get(target.id)
                # A worker ends if its target is missing. A target that is back needs a new one.
                if known is None or known[1].done():
                    self._begin(target)
            await self._end([id for id in self._workers if id not in targets])

    def _begin(self, target: Target) -> None:
        worker = Worker(
            target,
            store=self._store,
            clock=self._clock,
            sender=self._sender,
            node=self._node,
            random_number=self._random,
        )
        task = asyncio.create_task(worker.run(), name=f"notifications to {target.id}")
        # The task cannot do this itself: if it is cancelled before its first turn, it never runs.
        task.add_done_callback(lambda _: worker.close())
        self._workers[target.id] = worker, task

    async def _end(self, ids: Sequence[str]) -> None:
        ending = [self._workers.pop(id) for id in ids if id in self._workers]
        for worker, _ in ending:
            worker.stop()
        tasks = [task for _, task in ending]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_PATIENCE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _unknown(what: str, id: str, all_of_them: str) -> Refused:
    text = f"no {what} has the id {id[:100]!r}; list {all_of_them} and take an id from there"
    return Refused(Code.UNKNOWN_NOTIFICATION, text)


def _refuse_beside(target: Target, others: list[Target]) -> None:
    if len(others) >= TARGETS_MAX:
        raise Refused(
            Code.NOTIFICATION_INVALID, f"there are {TARGETS_MAX} targets already; remove one first"
        )
    if any(each.name == target.name for each in others):
        raise Refused(
            Code.NOTIFICATION_INVALID,
            f"there is a target {target.name!r} already; choose another name, or remove that one",
        )
