"""Manages the targets of notifications on this node, and runs a worker for each.

One slow target never delays another, because each has its own worker. On a shared store every
node has a worker for every target, and the lease of the cursor says whose turn it is.
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
from fairwarning.notifications.formats import trial_to
from fairwarning.notifications.model import Delivery, Outcome, Target, TargetDraft
from fairwarning.notifications.records import TARGETS_MAX, NotificationRecords
from fairwarning.notifications.sender import Sender
from fairwarning.notifications.targets import checked_target
from fairwarning.notifications.worker import OUTAGE_PAUSE_MS, RECHECK_MS, Worker

STOP_PATIENCE_S = 2.0
"""How long a try that is under way may still take when the node stops."""
ALONE = "alone"
"""The node's name on a store of one process: after a restart it still owns its leases."""

_DICE = SystemRandom().random
_log = logging.getLogger(__name__)


class _Keeper:
    """The task that starts and ends workers as targets change.

    All objects that `through` returns share it, so that they too know when it has stopped.
    """

    task: asyncio.Task[None] | None = None
    alarm: Alarm | None = None
    """It is rung after an outage, because the change that failed may have been stored."""


class Notifications:
    """Start it after the store is open; stop it before the store is closed."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        sender: Sender,
        dice: Callable[[], float] = _DICE,
    ) -> None:
        """`dice` returns a random number that spreads retries; a simulation brings its own."""
        self._store = store
        self._clock = clock
        self._sender = sender
        self._records = NotificationRecords(store)
        self._node = secrets.token_hex(8) if store.is_shared else ALONE
        self._dice = dice
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._keeper = _Keeper()
        self._listens = False
        self._refreshing = asyncio.Lock()
        """A list of targets is read and acted on before the next is read: else an older one that
        comes late would end the workers of those who came meanwhile."""

    def through(self, store: Store) -> "Notifications":
        """Return the same targets, but with changes written through another store."""
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
        """Stop the workers. What is not delivered by then is tried after the next start."""
        keeper = self._keeper
        if keeper.task is not None:
            keeper.task.cancel()
            await asyncio.gather(keeper.task, return_exceptions=True)
            keeper.task = keeper.alarm = None
        await self._end([*self._workers])
        await self._sender.close()

    async def create(self, draft: TargetDraft, *, by: Actor, why: str = "") -> Target:
        """Create a target that hears of all from now on, and return it with its secret."""
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
        """Remove the target, all that still waits for it, and its dead letters.

        Whoever is cut off by an outage may ask again, until all is gone.
        """
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
        """Send one test message now. It is not retried."""
        target = await self._find(id)
        message = trial_to(target, f"test-{secrets.token_hex(8)}", self._clock.now())
        return await self._sender.send(target, message)

    async def dead_letters(self, after: str = "", limit: int = 100) -> Sequence[Delivery]:
        """Return a page, the oldest first; `after` is the id of the last one of the page before."""
        return await self._records.dead(after, limit)

    async def retry(self, id: str) -> None:
        """Try a dead letter again at once, with all its attempts."""
        letter = await self._find_dead(id)
        await self._find(letter.target_id)
        again = replace(
            letter,
            attempts=0,
            next_try_ms=self._clock.now(),
            revivals=letter.revivals + 1,
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
            raise Refused(
                Code.UNKNOWN_NOTIFICATION,
                f"no target has the id {id[:100]!r}; list the targets and take an id from there",
            )
        return target

    async def _find_dead(self, id: str) -> Delivery:
        letter = await self._records.find_dead(id)
        if letter is None:
            raise Refused(
                Code.UNKNOWN_NOTIFICATION,
                f"no dead letter has the id {id[:100]!r}; list them and take an id from there",
            )
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
                # One that has ended took the target to be gone, as it was for a moment.
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
            dice=self._dice,
        )
        task = asyncio.create_task(worker.run(), name=f"notifications to {target.id}")
        # Not by the task itself: one that is cancelled before its first turn never runs.
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
