"""The one thread that writes, and its group commit.

Theory of operation. A commit costs a sync of the disk, and the cost is the same for one
change and for a hundred. So the thread takes all jobs that wait, up to a limit, runs them in
one transaction, and commits once; those that come meanwhile make up the next batch. A job
that is refused has as a rule written nothing, and the others go on. Once in a while it has;
then the batch is undone and each of its jobs runs again in a transaction of its own, which
is cheaper than a savepoint for every job. If the database itself fails, at any statement or
at the commit, then nothing of the batch is stored, and every job fails: even a refusal may
rest on a change that is now undone.

One who is alone on a quick disk need not change threads (`pace.py`): the event loop commits
for him, on the same connection, while the thread has nothing to do.

The whole batch comes back to the event loop in one call: first the signals, then the
callers, so that nobody acts on a change of which listeners have not heard.
"""

import asyncio
import logging
import math
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from fairwarning.engine.protocols import Signal
from fairwarning.stores.listeners import Listeners
from fairwarning.stores.sqlite.connection import Handle, is_outage, store_down

BATCH_JOBS_MAX = 256
_log = logging.getLogger(__name__)
# A piece of work on the write connection, and the caller who waits for its commit.
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], tuple[T, tuple[Signal, ...]]]


class Job(Generic[T]):
    """Filled in by the writer's thread; once it is delivered, read by the event loop."""

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._delivered: asyncio.Future[None] = loop.create_future()
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.signals: tuple[Signal, ...] = ()

    def attempt(self, connection: sqlite3.Connection) -> bool:
        """Whether it is to be kept; if not, the caller undoes it, and may have it try again.

        Raises only if the database itself failed.
        """
        try:
            result, self.signals = self._work(connection)
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and is_outage(error):
                raise
            self.fail(error)
            return False
        self._results, self._error = [result], None
        return True

    def fail(self, error: BaseException) -> None:
        """Nothing of this job is stored, whatever its attempt seemed to be."""
        self._results, self._error, self.signals = [], error, ()

    def deliver(self) -> None:
        """In the event loop. A caller who has gone away is none the wiser."""
        if not self._delivered.done():
            self._delivered.set_result(None)

    async def outcome(self) -> T:
        await self._delivered
        if self._error is not None:
            raise self._error
        return self._results[0]


ROW = 8


class Pace:
    def __init__(self, row: int = ROW) -> None:
        self._row = row
        self._left = row

    @property
    def is_steady(self) -> bool:
        """So many commits in a row were quick, and each had only one caller."""
        return self._left <= 0

    def note(self, sync_s: float, *, alone: bool) -> None:
        """How long the disk took for a commit; 0 if there was nothing to write."""
        if not alone or sync_s > QUICK_S:
            self.break_off()
        elif sync_s:
            self._left -= 1

    def break_off(self) -> None:
        self._left = self._row


class Writer:
    """Lives in the event loop that makes it, until it is stopped."""

    def __init__(self, path: Path, listeners: Listeners, pace: Pace) -> None:
        self._path = path
        self._listeners = listeners
        self._pace = pace
        pace.break_off()
        self._under_way = 0
        """Jobs of the thread. Without any it does not touch the connection."""
        self._is_here = False
        """The event loop has just committed, and others have not had their turn since."""
        self._handle = Handle(path)
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # A daemon: whoever was answered is safe, so a process that breaks need not wait for it.
        name = f"writer of {path.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def submit(self, work: Work[T], *, is_small: bool = False) -> T:
        """Returns once the work is durable; raises what the work raises, or StoreDown.

        Small is what may run in the event loop without anybody noticing.
        """
        job = Job(work, self._loop)
        if self._is_here:
            self._pace.break_off()
        elif is_small and self._may_commit_here and self._is_done_here(job):
            self._is_here = True
            try:
                # One who commits again and again must not keep all others waiting.
                await asyncio.sleep(0)
            finally:
                self._is_here = False
            return await job.outcome()
        self._under_way += 1
        self._jobs.put(job)
        return await job.outcome()

    async def stop(self) -> None:
        """What was submitted before is finished first."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    @property
    def _may_commit_here(self) -> bool:
        return self._pace.is_steady and not self._under_way and self._handle.is_open

    def _is_done_here(self, job: Job[Any]) -> bool:
        """False if it was not begun: a foreign lock is for the thread to wait for."""
        try:
            connection = self._handle.get(waits=False)
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            self._handle.discard()
            self._pace.break_off()
            return False
        try:
            sync_s = _finish(connection, [job]) or 0.0
            self._handle.refuse_moved()
            self._pace.note(sync_s, alone=True)
        except BaseException as error:
            self._pace.break_off()
            self._fail([job], error)
            if not isinstance(error, Exception):
                raise
        self._deliver([job])
        return True

    def _run(self) -> None:
        while batch := self._next_batch():
            sync_s = self._commit(batch)
            try:
                self._loop.call_soon_threadsafe(self._return, batch, sync_s)
            except RuntimeError:
                _log.warning("the event loop was closed before %d jobs came back", len(batch))
        self._handle.discard()

    def _next_batch(self) -> list[Job[Any]]:
        """Waits for the first job and takes what else is there; empty when it is time to stop."""
        batch: list[Job[Any]] = []
        while len(batch) < BATCH_JOBS_MAX:
            try:
                job = self._jobs.get(block=not batch)
            except queue.Empty:
                break
            if job is None:
                if batch:
                    self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _commit(self, batch: Sequence[Job[Any]]) -> float:
        """How long the disk took, as `_finish`; for ever if it failed."""
        try:
            connection = self._handle.get()
            connection.execute("BEGIN IMMEDIATE")
            sync_s = _finish(connection, batch)
            self._handle.refuse_moved()
        except Exception as error:
            self._fail(batch, error)
            return math.inf
        return max(self._commit([job]) for job in batch) if sync_s is None else sync_s

    def _fail(self, batch: Sequence[Job[Any]], error: BaseException) -> None:
        self._handle.discard()
        for job in batch:
            job.fail(self._explained(error))

    def _explained(self, error: BaseException) -> BaseException:
        """One for each caller: an exception collects the trace of whoever it is raised in."""
        if not isinstance(error, sqlite3.Error):
            return error
        outage = store_down(error, self._path)
        outage.__cause__ = error
        return outage

    def _return(self, batch: Sequence[Job[Any]], sync_s: float) -> None:
        self._under_way -= len(batch)
        self._pace.note(sync_s, alone=len(batch) == 1 and not self._under_way)
        self._deliver(batch)

    def _deliver(self, batch: Sequence[Job[Any]]) -> None:
        for job in batch:
            for signal in job.signals:
                self._listeners.tell(signal)
        for job in batch:
            job.deliver()


def _finish(connection: sqlite3.Connection, batch: Sequence[Job[Any]]) -> float | None:
    """Runs and commits what was begun. How long the disk took, 0 if nothing was to be written.

    None if a job failed after it had written: all is undone, and each is to run on its own.
    """
    before = connection.total_changes
    for job in batch:
        written = connection.total_changes
        if not job.attempt(connection) and connection.total_changes != written:
            connection.execute("ROLLBACK")
            return 0.0 if len(batch) == 1 else None
    began_s = time.perf_counter()
    connection.execute("COMMIT")
    return time.perf_counter() - began_s if connection.total_changes != before else 0.0


# Whether the next commit may run in the event loop, which spares a caller two changes of
# thread.
QUICK_S = 0.002
