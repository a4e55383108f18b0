"""A piece of work on the write connection, and the caller who waits for its commit."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Generic, TypeVar

from fairwarning.engine.protocols import Signal
from fairwarning.stores.sqlite.connection import is_outage

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
