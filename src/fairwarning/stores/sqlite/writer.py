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
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairwarning.stores.listeners import Listeners
from fairwarning.stores.sqlite.connection import Handle, store_down
from fairwarning.stores.sqlite.job import Job, T, Work
from fairwarning.stores.sqlite.pace import Pace

BATCH_JOBS_MAX = 256

_log = logging.getLogger(__name__)


class Writer:
    """Lives in the event loop that makes it, until it is stopped."""

    def __init__(self, path: Path, listeners: Listeners, pace: Pace) -> None:
        self._path = path
        self._listeners = listeners
        self._pace = pace
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

    async def submit(self, work: Work[T]) -> T:
        """Returns once the work is durable; raises what the work raises, or StoreDown."""
        job = Job(work, self._loop)
        if self._is_here:
            self._pace.break_off()
        elif self._pace.is_steady and not self._under_way and self._is_done_here(job):
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

    def _is_done_here(self, job: Job[Any]) -> bool:
        """If not, nothing has happened yet, and it is for the thread to sort out what is wrong."""
        began_s = time.perf_counter()
        try:
            done = _is_done(self._handle.get(waits=False), [job])
        except sqlite3.Error:
            self._handle.discard()
            self._pace.break_off()
            return False
        assert done, "it is alone"
        self._pace.note(time.perf_counter() - began_s, alone=True)
        self._deliver([job])
        return True

    def _run(self) -> None:
        while batch := self._next_batch():
            began_s = time.perf_counter()
            self._commit(batch)
            took_s = time.perf_counter() - began_s
            try:
                self._loop.call_soon_threadsafe(self._return, batch, took_s)
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

    def _commit(self, batch: Sequence[Job[Any]]) -> None:
        try:
            is_done = _is_done(self._handle.get(), batch)
        except Exception as error:
            self._handle.discard()
            for job in batch:
                job.fail(self._explained(error))
        else:
            if not is_done:
                for job in batch:
                    self._commit([job])

    def _explained(self, error: Exception) -> Exception:
        """One for each caller: an exception collects the trace of whoever it is raised in."""
        if not isinstance(error, sqlite3.Error):
            return error
        outage = store_down(error, self._path)
        outage.__cause__ = error
        return outage

    def _return(self, batch: Sequence[Job[Any]], took_s: float) -> None:
        self._under_way -= len(batch)
        self._pace.note(took_s, alone=len(batch) == 1 and not self._under_way)
        self._deliver(batch)

    def _deliver(self, batch: Sequence[Job[Any]]) -> None:
        for job in batch:
            for signal in job.signals:
                self._listeners.tell(signal)
        for job in batch:
            job.deliver()


def _is_done(connection: sqlite3.Connection, batch: Sequence[Job[Any]]) -> bool:
    """Whether what succeeded is durable and what did not left no trace; if not, nothing is."""
    connection.execute("BEGIN IMMEDIATE")
    for job in batch:
        written = connection.total_changes
        if not job.attempt(connection) and connection.total_changes != written:
            connection.execute("ROLLBACK")
            return len(batch) == 1
    connection.execute("COMMIT")
    return True
