"""The one thread that writes to the file. It commits many writes together.

These are the steps of one write, from the caller to the disk and back:

1. `SqliteStore.transact` (`store.py`) gives `Writer.submit` the work, a function that takes the
   connection, reads, decides and stores (with the parts in `transactions.py`).
2. `submit` makes a `Job` of it and queues it for the thread, or commits it at once in the event
   loop if `InlineCommits` allows it.
3. The thread takes all jobs that wait (`_next_batch`), begins one transaction (`_commit`), runs
   every job's work in it and commits (`_run_jobs`). The connection is from `LazyConnection`
   (`connection.py`).
4. Inside the work, `plan_transaction` (`../sql_store.py`) runs the pure step on the stored scope,
   and its statements are executed.
5. The whole batch comes back to the event loop in one call (`_return`). It tells the listeners
   first and then answers the callers, so that no caller acts before the listeners know the change.

Writes are grouped because a commit needs a sync of the disk, which costs the same for one change
and for a hundred. Jobs that arrive during a commit form the next batch. A job that is refused has
usually written nothing, and the others go on. If it has written, the batch is undone, and each of
its jobs runs again in a transaction of its own. This is cheaper than a savepoint for every job. If
the database itself fails, at any statement or at the commit, nothing of the batch is stored and
every job fails. This includes refused jobs, because a refusal may depend on a change of the same
batch that is now undone.
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
from fairwarning.stores.sqlite.connection import LazyConnection, is_outage, store_down

BATCH_JOBS_MAX = 256
"""One commit has at most this many jobs, so that its first caller does not wait for long."""
QUICK_S = 0.002
"""A commit counts as quick if the disk's sync took at most this long: polls wait meanwhile."""
QUICK_COMMITS_NEEDED = 8
"""After this many quick commits in a row, the next one may run in the event loop."""
_log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], tuple[T, tuple[Signal, ...]]]
"""A function that returns the result for the caller and the signals for the listeners."""


class Job(Generic[T]):
    """A piece of work on the write connection, whose caller waits for the commit. The writer's
    thread stores the outcome in it. The event loop reads it after `deliver`.
    """

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._delivered: asyncio.Future[None] = loop.create_future()
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.signals: tuple[Signal, ...] = ()

    def attempt(self, connection: sqlite3.Connection) -> bool:
        """Runs the work and returns whether it succeeded.

        If it returns False, the writer must undo what the work wrote, and may run the job again.
        Raises sqlite3.Error only if the database failed.
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
        """Sets the error as the outcome, in place of a result, because nothing was stored."""
        self._results, self._error, self.signals = [], error, ()

    def deliver(self) -> None:
        """Wakes the caller, unless it was cancelled. Call it only in the event loop."""
        if not self._delivered.done():
            self._delivered.set_result(None)

    async def outcome(self) -> T:
        await self._delivered
        if self._error is not None:
            raise self._error
        return self._results[0]


class InlineCommits:
    """Decides whether the next commit may run in the event loop, which saves two thread switches.

    It may after enough commits in a row were quick and had only one job each. Then the disk does
    not block the loop for long, and the thread would have no other jobs to commit with this one.
    """

    def __init__(self, after: int = QUICK_COMMITS_NEEDED) -> None:
        self._needed = after
        self._left = after

    @property
    def allows(self) -> bool:
        return self._left <= 0

    def record(self, sync_s: float, *, alone: bool) -> None:
        """Counts a quick commit of one job. After any other commit, the count begins again.
        `sync_s` is how long the disk needed. It is 0 if nothing was written.
        """
        if not alone or sync_s > QUICK_S:
            self.reset()
        elif sync_s:
            self._left -= 1

    def reset(self) -> None:
        self._left = self._needed


class Writer:
    """Commits the work of callers in its thread, for the event loop in which it was created."""

    def __init__(self, path: Path, listeners: Listeners, inline_commits: InlineCommits) -> None:
        self._path = path
        self._listeners = listeners
        self._inline_commits = inline_commits
        inline_commits.reset()
        self._jobs_under_way = 0
        """How many jobs the thread has. At 0, the thread does not use the connection."""
        self._has_just_committed = False
        """Whether the event loop has committed a job and has not run other tasks since."""
        self._connection = LazyConnection(path)
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # A daemon, because a process that breaks need not wait: all that was answered is on disk.
        name = f"writer of {path.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def submit(self, work: Work[T], *, is_small: bool = False) -> T:
        """Returns the work's result as soon as its changes are durable.

        Raises what the work raises, and StoreDown if the database fails. `is_small` means that the
        work is short enough to run in the event loop.
        """
        job = Job(work, self._loop)
        if self._has_just_committed:
            self._inline_commits.reset()
        elif is_small and self._may_commit_inline and self._commit_inline(job):
            self._has_just_committed = True
            try:
                # A caller that commits again and again must not keep all others waiting.
                await asyncio.sleep(0)
            finally:
                self._has_just_committed = False
            return await job.outcome()
        self._jobs_under_way += 1
        self._jobs.put(job)
        return await job.outcome()

    async def stop(self) -> None:
        """Waits until all submitted work is finished, and ends the thread."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    @property
    def _may_commit_inline(self) -> bool:
        return self._inline_commits.allows and not self._jobs_under_way and self._connection.is_open

    def _commit_inline(self, job: Job[Any]) -> bool:
        """Commits the job in the event loop, and returns True even if the job failed.

        Returns False if no transaction could begin, for example because another program has locked
        the file. Then the thread must run the job, because only the thread may wait.
        """
        try:
            connection = self._connection.get(waits=False)
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            self._connection.discard()
            self._inline_commits.reset()
            return False
        try:
            sync_s = _run_jobs(connection, [job]) or 0.0
            self._connection.refuse_moved()
            self._inline_commits.record(sync_s, alone=True)
        except BaseException as error:
            self._inline_commits.reset()
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
        self._connection.discard()

    def _next_batch(self) -> list[Job[Any]]:
        """Waits for a job and returns all jobs that wait by then. An empty list means stop."""
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
        """Commits the batch and returns how long the disk's sync took, or infinity if it failed."""
        try:
            connection = self._connection.get()
            connection.execute("BEGIN IMMEDIATE")
            sync_s = _run_jobs(connection, batch)
            self._connection.refuse_moved()
        except Exception as error:
            self._fail(batch, error)
            return math.inf
        return max(self._commit([job]) for job in batch) if sync_s is None else sync_s

    def _fail(self, batch: Sequence[Job[Any]], error: BaseException) -> None:
        self._connection.discard()
        for job in batch:
            job.fail(self._explained(error))

    def _explained(self, error: BaseException) -> BaseException:
        """Returns a new StoreDown for an error of SQLite, and any other error unchanged. Each
        caller gets a StoreDown of its own, because to raise an error changes its traceback.
        """
        if not isinstance(error, sqlite3.Error):
            return error
        outage = store_down(error, self._path)
        outage.__cause__ = error
        return outage

    def _return(self, batch: Sequence[Job[Any]], sync_s: float) -> None:
        self._jobs_under_way -= len(batch)
        self._inline_commits.record(sync_s, alone=len(batch) == 1 and not self._jobs_under_way)
        self._deliver(batch)

    def _deliver(self, batch: Sequence[Job[Any]]) -> None:
        for job in batch:
            for signal in job.signals:
                self._listeners.tell(signal)
        for job in batch:
            job.deliver()


def _run_jobs(connection: sqlite3.Connection, batch: Sequence[Job[Any]]) -> float | None:
    """Runs the jobs in the open transaction, and commits it.

    Returns how long the sync of the disk took, or 0 if nothing was stored. Returns None if one of
    several jobs failed after it had written. Then all is undone, and each job must run alone.
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
